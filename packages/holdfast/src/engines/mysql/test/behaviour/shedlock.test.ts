// hold: "shedlock". shedlock.long.test.ts runs all laws with it.
import assert from "node:assert/strict";
import {
  expectSchemaMadeOnce,
  takeTurns,
  testShedLock,
} from "../../../../test-support/sql/shedlock.fixture.js";
import { init } from "../../index.js";
import { HOLD, shedLockServer } from "../support/shedlock.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ args: ["--default-time-zone=+05:45"] }, (it) => {
  it("the schema is created once, beside ShedLock's table, and a schema of another kind is refused", (server) => {
    const make = (shedlock: string) => () => init(server.admin, { shedlock });
    const mixed = server.engine({ ...HOLD, prefix: "holdfast_" });
    return expectSchemaMadeOnce(server.engine(HOLD), [make("shedlock"), make("shedlock")], mixed);
  });

  testShedLock((title, part) => it(title, (server) => part(shedLockServer(server))));

  it("200 turns with ShedLock, in other time zones, do not overlap", (server) =>
    takeTurns(shedLockServer(server), 200));

  it("a name that does not fit into ShedLock's column is refused", async (server) => {
    const locks = server.locks(HOLD);
    await assert.rejects(locks.tryAcquire("x".repeat(65)), /64 characters/);
  });
});
