// idleMs: how long unused rows are kept, for every kind of hold.
import assert from "node:assert/strict";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  expectIdleChecked,
  expectNobodyCutOff,
  expectNothingIdle,
  type IdleServer,
  type TableName,
  testIdle,
} from "../../../../test-support/sql/idle.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { parseEngineUrl } from "../../../../url.js";
import { init, POSTGRES_DEFAULTS, postgresEngine } from "../../index.js";
import { termsFromUrl } from "../../options.js";
import {
  describeWithPostgres,
  type OpenOptions,
  type PostgresTestServer,
} from "../support/test-server.fixture.js";

const SHEDLOCK = { hold: "shedlock" } as const;

describeWithPostgres({}, (it) => {
  testIdle((title, part) => it(title, (server) => part(idleServer(server))), 40);

  it("idle rows are removed and nobody is cut off with ShedLock's table", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await expectNothingIdle(idleServer(server, "holdfast_shedlock", SHEDLOCK));
    await expectNobodyCutOff(idleServer(server, "holdfast_shedlock", SHEDLOCK));
  });

  it("rows of dead sessions are removed after idleMs", async (server) => {
    const advisory = { hold: "advisory", listen: false, idleMs: 5_000 } as const;
    const locks = server.locks(advisory);
    const live = await locks.acquire("g1");
    const dead = server.engine(advisory);
    await dead.tryAcquire(claim("g2"), now());
    await dead.close();
    const left = async () => {
      const text = "SELECT resource FROM holdfast.advisory WHERE resource LIKE 'g%' ORDER BY 1";
      return (await server.admin.query(text)).rows.map(({ resource }) => resource).join();
    };
    const age = (seconds: number) =>
      server.admin.query(`UPDATE holdfast.advisory
        SET heard_at = heard_at - interval '${seconds} seconds' WHERE resource LIKE 'g%'`);
    await until("the session has ended", async () => {
      const { rows } = await server.admin.query(
        "SELECT holdfast.advisory_lives(session) AS lives FROM holdfast.advisory WHERE resource = 'g2'",
      );
      return rows[0].lives === false;
    });
    await age(6);
    await server.admin.query("SELECT holdfast.advisory_sweep(60000)");
    assert.equal(await left(), "g1,g2", "not before its time");
    await until("it is gone", async () => {
      await (await locks.acquire("usual")).release();
      return (await left()) === "g1";
    });
    await age(3_600);
    await server.admin.query("SELECT holdfast.advisory_sweep(1000)");
    assert.equal(await locks.check(live.sequencer), true, "its session is there");
  });

  it("every call sends the idleMs of its own engine", async (server) => {
    await init(server.admin, { schema: "spied" });
    await server.admin.query(`
      CREATE TABLE spied.seen (keep_ms bigint);
      CREATE OR REPLACE FUNCTION spied.sweep(keep_ms bigint) RETURNS void LANGUAGE plpgsql AS
        'BEGIN INSERT INTO spied.seen VALUES (keep_ms); END'`);
    const engines = [7_000, 8_000].map((idleMs) =>
      server.engine({ schema: "spied", idleMs, pool: { max: 1 } }),
    );
    const cycle = async (name: string) => {
      for (const [i, engine] of engines.entries()) {
        const asked = claim(`${name}-${i}`);
        await engine.tryAcquire(asked, now());
        await engine.release([{ ...asked, tombstoneMs: 0 }], now());
      }
    };
    for (let i = 0; i < 100; i++) await cycle("one");
    for (let round = 0; round < 4; round++) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => cycle(`many-${i}`)));
    }
    const { rows } = await server.admin.query(
      "SELECT DISTINCT keep_ms::int AS ms FROM spied.seen ORDER BY 1",
    );
    assert.deepEqual(rows, [{ ms: 7_000 }, { ms: 8_000 }]);
  });

  it("the longest idleMs gives a date that the database can write", async (server) => {
    await server.admin.query("SELECT holdfast.sweep($1)", [Number.MAX_SAFE_INTEGER]);
    await server.admin.query("SELECT holdfast.advisory_sweep($1)", [Number.MAX_SAFE_INTEGER]);
  });

  it("an invalid idleMs is refused at once, as an option and in a URL", async (server) => {
    const client = server.pool();
    expectIdleChecked(
      (idleMs) => postgresEngine({ client, idleMs }),
      (query) => termsFromUrl(parseEngineUrl(`postgres://h/d${query}`)).idleMs,
      ["rows", "advisory", "shedlock"],
    );
    assert.equal(POSTGRES_DEFAULTS.idleMs, 60_000);
  });
});

const COLUMNS: Readonly<Record<TableName, readonly [name: string | null, time: string]>> = {
  resources: ["name", "due_at"],
  grants: ["resource", "expires_at"],
  waiters: ["resource", "heard_at"],
  tombstones: [null, "until"],
};

function idleServer(
  server: PostgresTestServer,
  schema = "holdfast",
  options: OpenOptions = {},
): IdleServer {
  const { admin } = server;
  const where = (name: string | null, prefix: string) =>
    name === null ? "" : `WHERE ${name} LIKE '${prefix}%'`;
  return {
    engine: (idleMs) => server.engine({ ...options, idleMs }),
    age(table, prefix, ms) {
      const [name, time] = COLUMNS[table];
      return admin.query(`UPDATE ${schema}.${table}
        SET ${time} = ${time} - interval '${ms} milliseconds' ${where(name, prefix)}`);
    },
    async rows(prefix) {
      const counts = Object.entries(COLUMNS).map(([table, [name]]) => {
        return `(SELECT count(*)::int FROM ${schema}.${table} ${where(name, prefix)}) AS ${table}`;
      });
      return (await admin.query(`SELECT ${counts.join()}`)).rows[0];
    },
    sweep: (idleMs) => admin.query(`SELECT ${schema}.sweep($1)`, [idleMs]),
  };
}
