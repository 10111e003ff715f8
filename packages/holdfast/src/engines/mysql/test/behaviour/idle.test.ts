// idleMs: how long unused rows are kept, for every kind of hold, and what a sweep costs.
import assert from "node:assert/strict";
import { formatSequencer } from "../../../../fencing/sequencer.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import {
  expectIdleChecked,
  expectNobodyCutOff,
  expectNothingIdle,
  type IdleServer,
  type TableName,
  testIdle,
} from "../../../../test-support/sql/idle.fixture.js";
import { parseEngineUrl } from "../../../../url.js";
import { fenceInTransaction, init, MYSQL_DEFAULTS, mysqlEngine } from "../../index.js";
import { termsFromUrl } from "../../options.js";
import {
  describeWithMysql,
  type MysqlTestServer,
  type OpenOptions,
} from "../support/test-server.fixture.js";

const SHEDLOCK = { hold: "shedlock" } as const;
const AT = "holdfast_now_us(UTC_TIMESTAMP(6))";

describeWithMysql({}, (it) => {
  testIdle((title, part) => it(title, (server) => part(idleServer(server))), 12);

  it("idle rows are removed and nobody is cut off with ShedLock's table", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await expectNothingIdle(idleServer(server, "holdfast_shed_", SHEDLOCK));
    await expectNobodyCutOff(idleServer(server, "holdfast_shed_", SHEDLOCK));
  });

  it("an unused resource is deleted, and its tokens still rise", async (server) => {
    const locks = server.locks();
    const first = await locks.acquire("i");
    await first.release();
    await server.admin.query("UPDATE holdfast_resources SET used_us = 0 WHERE name = 'i'");
    await idleServer(server).sweep(60_000);
    assert.equal(await server.count("resources", "name = 'i'"), 0);
    const second = await locks.acquire("i");
    assert.ok(second.token > first.token, `${second.token} came after ${first.token}`);
  });

  it("a sweep waits for no transaction that has checked a fence", async (server) => {
    const engine = server.engine();
    const held = claim("f");
    const granted = await engine.tryAcquire(held, now());
    assert.ok(granted.kind === "granted");
    const user = await server.connection();
    await user.query("START TRANSACTION");
    const { resource, mode } = held;
    await fenceInTransaction(user, formatSequencer({ resource, mode, token: granted.token }));
    const over = `UPDATE holdfast_grants SET expires_us = 1 WHERE resource = 'f';
      UPDATE holdfast_resources SET used_us = 1 WHERE name = 'f'`;
    await server.admin.query(over);
    await soon(900, () => timed(() => idleServer(server).sweep(1_000)));
    assert.equal(await server.count("grants", "resource = 'f'"), 1, "nobody succeeds it yet");
    await user.query("COMMIT");
    await server.admin.query(over);
    await idleServer(server).sweep(1_000);
    assert.equal(await server.count("resources", "name = 'f'"), 0);
  });

  it("the longest idleMs gives a number that the database can write", async (server) => {
    await idleServer(server).sweep(Number.MAX_SAFE_INTEGER);
  });

  it("an invalid idleMs is refused at once, as an option and in a URL", async (server) => {
    const client = server.pool();
    expectIdleChecked(
      (idleMs) => mysqlEngine({ client, idleMs }),
      (query) => termsFromUrl(parseEngineUrl(`mysql://h/d${query}`)).idleMs,
      ["rows", "shedlock"],
    );
    assert.equal(MYSQL_DEFAULTS.idleMs, 60_000);
  });
});

const COLUMNS: Readonly<Record<TableName, readonly [name: string | null, time: string]>> = {
  resources: ["name", "used_us"],
  grants: ["resource", "expires_us"],
  waiters: ["resource", "heard_us"],
  tombstones: [null, "until_us"],
};

function idleServer(
  server: MysqlTestServer,
  prefix = "holdfast_",
  options: OpenOptions = {},
): IdleServer {
  const { admin } = server;
  const where = (name: string | null, begins: string) =>
    name === null ? "" : `WHERE ${name} LIKE '${begins}%'`;
  return {
    engine: (idleMs) => server.engine({ ...options, idleMs }),
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
    // In a transaction, as in the routine that calls it.
    sweep: (idleMs) =>
      admin.query(`SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION;
        CALL ${prefix}sweep(${AT}, ${idleMs}, 100); COMMIT`),
  };
}
