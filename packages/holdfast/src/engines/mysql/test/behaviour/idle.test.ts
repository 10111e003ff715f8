// idleMs: how long rows that nobody uses are kept, in every way to hold; and what a look for them costs.
import assert from "node:assert/strict";
import { formatSequencer } from "../../../../fencing/sequencer.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import {
  expectIdleChecked,
  expectNobodyCutOff,
  expectNothingIdle,
  type IdleGround,
  playIdle,
  type Table,
} from "../../../../test-support/sql/idle.fixture.js";
import { parseEngineUrl } from "../../../../url.js";
import { fenceInTransaction, init, MYSQL_DEFAULTS, mysqlEngine } from "../../index.js";
import { termsFromUrl } from "../../options.js";
import { type Ground, type OpenOptions, scenes } from "../support/test-server.fixture.js";

const SHEDLOCK = { hold: "shedlock" } as const;
const AT = "holdfast_now_us(UTC_TIMESTAMP(6))";

scenes({}, (play) => {
  playIdle((title, part) => play(title, (ground) => part(onGround(ground))), 12);

  play("both are so with ShedLock's table", async (ground) => {
    await init(ground.admin, { shedlock: "shedlock" });
    await expectNothingIdle(onGround(ground, "holdfast_shed_", SHEDLOCK));
    await expectNobodyCutOff(onGround(ground, "holdfast_shed_", SHEDLOCK));
  });

  play("a resource that nobody uses is forgotten, and its tokens go on rising", async (ground) => {
    const locks = ground.locks();
    const first = await locks.acquire("i");
    await first.release();
    await ground.admin.query("UPDATE holdfast_resources SET used_us = 0 WHERE name = 'i'");
    await onGround(ground).sweep(60_000);
    assert.equal(await ground.count("resources", "name = 'i'"), 0);
    const second = await locks.acquire("i");
    assert.ok(second.token > first.token, `${second.token} came after ${first.token}`);
  });

  play("a sweep waits for no transaction that has checked a fence", async (ground) => {
    const engine = ground.engine();
    const held = claim("f");
    const granted = await engine.tryAcquire(held, now());
    assert.ok(granted.kind === "granted");
    const user = await ground.connection();
    await user.query("START TRANSACTION");
    const { resource, mode } = held;
    await fenceInTransaction(user, formatSequencer({ resource, mode, token: granted.token }));
    const over = `UPDATE holdfast_grants SET expires_us = 1 WHERE resource = 'f';
      UPDATE holdfast_resources SET used_us = 1 WHERE name = 'f'`;
    await ground.admin.query(over);
    await soon(900, () => timed(() => onGround(ground).sweep(1_000)));
    assert.equal(await ground.count("grants", "resource = 'f'"), 1, "nobody succeeds it yet");
    await user.query("COMMIT");
    await ground.admin.query(over);
    await onGround(ground).sweep(1_000);
    assert.equal(await ground.count("resources", "name = 'f'"), 0);
  });

  play("an idleMs for ever is no number that the database cannot write", async (ground) => {
    await onGround(ground).sweep(Number.MAX_SAFE_INTEGER);
  });

  play("what is no time is refused at the door, and a URL says it too", async (ground) => {
    const client = ground.pool();
    expectIdleChecked(
      (idleMs) => mysqlEngine({ client, idleMs }),
      (query) => termsFromUrl(parseEngineUrl(`mysql://h/d${query}`)).idleMs,
      ["rows", "shedlock"],
    );
    assert.equal(MYSQL_DEFAULTS.idleMs, 60_000);
  });
});

const COLUMNS: Readonly<Record<Table, readonly [name: string | null, time: string]>> = {
  resources: ["name", "used_us"],
  grants: ["resource", "expires_us"],
  waiters: ["resource", "heard_us"],
  tombstones: [null, "until_us"],
};

function onGround(ground: Ground, prefix = "holdfast_", options: OpenOptions = {}): IdleGround {
  const { admin } = ground;
  const where = (name: string | null, begins: string) =>
    name === null ? "" : `WHERE ${name} LIKE '${begins}%'`;
  return {
    engine: (idleMs) => ground.engine({ ...options, idleMs }),
    age(table, begins, ms) {
      const [name, time] = COLUMNS[table];
      return admin.query(
        `UPDATE ${prefix}${table} SET ${time} = ${time} - ${ms * 1_000} ${where(name, begins)}`,
      );
    },
    async rows(begins) {
      const counts = Object.entries(COLUMNS).map(([table, [name]]) => {
        return `(SELECT COUNT(*) FROM ${prefix}${table} ${where(name, begins)}) AS ${table}`;
      });
      return ((await admin.query(`SELECT ${counts.join()}`))[0] as never)[0];
    },
    // In a transaction, as the routine that calls it has one.
    sweep: (idleMs) =>
      admin.query(`SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;
        CALL ${prefix}sweep(${AT}, ${idleMs}, 100); COMMIT`),
  };
}
