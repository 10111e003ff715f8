// hold: "shedlock". All laws with it are in shedlock.long-test.ts.
import assert from "node:assert/strict";
import {
  expectSchemaMadeOnce,
  playShedLock,
  takeTurns,
} from "../../../../test-support/sql/shedlock.fixture.js";
import { init } from "../../index.js";
import { HOLD, onGround } from "../support/shedlock.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ args: ["--default-time-zone=+05:45"] }, (play) => {
  play("the schema is made once, beside ShedLock's table, and kinds are not mixed up", (ground) => {
    const make = (shedlock: string) => () => init(ground.admin, { shedlock });
    const mixed = ground.engine({ ...HOLD, prefix: "holdfast_" });
    return expectSchemaMadeOnce(ground.engine(HOLD), [make("shedlock"), make("shedlock")], mixed);
  });

  playShedLock((title, part) => play(title, (ground) => part(onGround(ground))));

  play("200 turns with ShedLock, in other time zones, do not overlap", (ground) =>
    takeTurns(onGround(ground), 200),
  );

  play("a name that does not fit into ShedLock's column is refused", async (ground) => {
    const locks = ground.locks(HOLD);
    await assert.rejects(locks.tryAcquire("x".repeat(65)), /64 characters/);
  });
});
