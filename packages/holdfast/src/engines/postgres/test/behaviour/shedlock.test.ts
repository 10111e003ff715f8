// hold: "shedlock". All laws with it are in shedlock.long-test.ts.
import assert from "node:assert/strict";
import type { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectSchemaMadeOnce,
  playShedLock,
  takeTurns,
} from "../../../../test-support/sql/shedlock.fixture.js";
import { init } from "../../index.js";
import { HOLD, onGround } from "../support/shedlock.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ settings: ["timezone=Asia/Kathmandu"] }, (play) => {
  play("the schema is made once, beside ShedLock's table, and kinds are not mixed up", (ground) => {
    const make = (shedlock: string) => () => init(ground.admin, { shedlock });
    const mixed = ground.engine({ ...HOLD, schema: "holdfast" });
    return expectSchemaMadeOnce(
      ground.engine(HOLD),
      [make("shedlock"), make("public.shedlock")],
      mixed,
    );
  });

  playShedLock((title, part) => play(title, (ground) => part(onGround(ground))));

  play("200 turns with ShedLock, in other time zones, do not overlap", (ground) =>
    takeTurns(onGround(ground), 200),
  );

  play(
    "a table whose times have a zone is refused with the statement that helps",
    async (ground) => {
      await ground.admin.query(`CREATE TABLE zoned (name varchar(64) PRIMARY KEY,
      lock_until timestamptz NOT NULL, locked_at timestamptz NOT NULL, locked_by varchar(255) NOT NULL)`);
      const options = { schema: "zoned_locks", shedlock: "zoned" };
      let help = "";
      await assert.rejects(init(ground.admin, options), (error: EngineError) => {
        [help = ""] = /ALTER TABLE .*/.exec(error.message) ?? [];
        return error.effect === "none" && !error.retryable;
      });
      await ground.admin.query(help);
      await init(ground.admin, options);
      const engine = ground.engine({ ...HOLD, schema: "zoned_locks" });
      assert.equal((await engine.tryAcquire(claim("z"), now())).kind, "granted");
    },
  );

  play("a name that does not fit into ShedLock's column is refused", async (ground) => {
    const locks = ground.locks(HOLD);
    await assert.rejects(locks.tryAcquire("x".repeat(65)), { code: "ENGINE" });
  });
});
