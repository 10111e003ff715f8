// hold: "shedlock". shedlock.long.test.ts runs all laws with it.
import assert from "node:assert/strict";
import type { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectSchemaMadeOnce,
  takeTurns,
  testShedLock,
} from "../../../../test-support/sql/shedlock.fixture.js";
import { init } from "../../index.js";
import { HOLD, shedLockServer } from "../support/shedlock.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({ settings: ["timezone=Asia/Kathmandu"] }, (it) => {
  it("the schema is created once, beside ShedLock's table, and a schema of another kind is refused", (server) => {
    const make = (shedlock: string) => () => init(server.admin, { shedlock });
    const mixed = server.engine({ ...HOLD, schema: "holdfast" });
    return expectSchemaMadeOnce(
      server.engine(HOLD),
      [make("shedlock"), make("public.shedlock")],
      mixed,
    );
  });

  testShedLock((title, part) => it(title, (server) => part(shedLockServer(server))));

  it("200 turns with ShedLock, in other time zones, do not overlap", (server) =>
    takeTurns(shedLockServer(server), 200));

  it("a table with timestamptz columns is refused with the statement that helps", async (server) => {
    await server.admin.query(`CREATE TABLE zoned (name varchar(64) PRIMARY KEY,
      lock_until timestamptz NOT NULL, locked_at timestamptz NOT NULL, locked_by varchar(255) NOT NULL)`);
    const options = { schema: "zoned_locks", shedlock: "zoned" };
    let help = "";
    await assert.rejects(init(server.admin, options), (error: EngineError) => {
      [help = ""] = /ALTER TABLE .*/.exec(error.message) ?? [];
      return error.effect === "none" && !error.retryable;
    });
    await server.admin.query(help);
    await init(server.admin, options);
    const engine = server.engine({ ...HOLD, schema: "zoned_locks" });
    assert.equal((await engine.tryAcquire(claim("z"), now())).kind, "granted");
  });

  it("a name that does not fit into ShedLock's column is refused", async (server) => {
    const locks = server.locks(HOLD);
    await assert.rejects(locks.tryAcquire("x".repeat(65)), { code: "ENGINE" });
  });
});
