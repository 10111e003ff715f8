// Errors of the driver contain details and parameters. None of them is shown.
import assert from "node:assert/strict";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { eventsOf, keepsSecret } from "../../../../test-support/sql/secrets.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const SPOIL = (state: string) => `
  CREATE OR REPLACE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION USING ERRCODE = '${state}', MESSAGE = 'spoilt ' || NEW.grant_id,
      DETAIL = 'id ' || NEW.grant_id; END $$;
  CREATE OR REPLACE TRIGGER spoil BEFORE INSERT ON holdfast.grants
    FOR EACH ROW EXECUTE FUNCTION spoil();
  CREATE OR REPLACE TRIGGER spoil BEFORE INSERT ON holdfast.advisory
    FOR EACH ROW EXECUTE FUNCTION spoil()`;

describeWithPostgres({}, (it) => {
  // The server adds the parameters of a statement to its errors.
  const pool = { options: "-c log_parameter_max_length_on_error=-1" };
  for (const [hold, state] of [
    ["rows", "XX000"],
    ["rows", "40001"],
    ["advisory", "XX000"],
  ] as const) {
    it(`hold ${hold}: a failure by ${state} shows no grantId, in no event`, async (server) => {
      const engine = server.engine({ hold, pool, listen: false });
      await engine.check({ resource: "warm", mode: "exclusive", token: 1n }, now());
      await server.admin.query(SPOIL(state));
      const held = claim("a");
      const events = await eventsOf(() =>
        assert.rejects(engine.tryAcquire(held, now()), (error: EngineError) => {
          keepsSecret(error, held.grantId);
          const { code } = error.cause as { code?: string };
          return error instanceof EngineError && code === state;
        }),
      );
      assert.equal(events.length > 0, state === "40001", "retries are reported");
      for (const event of events) keepsSecret(event, held.grantId);
      await server.admin.query(
        "DROP TRIGGER spoil ON holdfast.grants; DROP TRIGGER spoil ON holdfast.advisory",
      );
    });
  }
});
