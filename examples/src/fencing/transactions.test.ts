// The check among other transactions: who waits for whom, and what a snapshot may hide.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresServer, startPostgres } from "@holdfast/servers";
import pg from "pg";
import { type Database, mariadb, postgres, type Session, sqlite } from "./databases.fixture.js";
import { held } from "./held.fixture.js";
import { register, TABLE, transaction, withClient } from "./postgres.js";

const MOMENT_MS = 300;
const LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const READ = "SELECT units FROM stock WHERE item = 'unit'";

interface Ground {
  ours: Session;
  theirs: Session;
  third: Session;
}

function ground(start: () => Promise<Database>): Ground {
  const sessions = {} as Ground;
  let database: Database;
  before(async () => {
    database = await start();
    for (const name of ["ours", "theirs", "third"] as const) sessions[name] = await database.open();
    await sessions.ours.query("CREATE TABLE stock (item VARCHAR(99) PRIMARY KEY, units INT)");
    await sessions.ours.query("INSERT INTO stock VALUES ('unit', 1)");
  });
  after(() => database.stop());
  return sessions;
}

for (const [name, start] of Object.entries({ postgres, mariadb })) {
  describe(name, () => {
    const sessions = ground(start);
    const what = { postgres: "CHARACTERISTICS AS TRANSACTION", mariadb: "TRANSACTION" }[name];

    const begin = async (session: Session, level: string) => {
      await session.query(`SET SESSION ${what} ISOLATION LEVEL ${level}`);
      await session.query("START TRANSACTION");
    };

    for (const level of LEVELS) {
      test(`${level}: after the check a successor waits to register, and no other name does`, async () => {
        const { ours, theirs, third } = sessions;
        const known = [..."bdfhjlnprt"].map((letter) => letter + level);
        for (const resource of [level, ...known]) await ours.register(held(resource, 1n));
        await begin(ours, level);
        await ours.check(held(level, 1n));
        let registered = false;
        const registering = theirs.register(held(level, 2n)).then(() => {
          registered = true;
        });
        await sleep(MOMENT_MS);
        // Rows that are there, and new ones on both sides of the locked one.
        const fresh = [level.slice(0, -1), `${level}a`, ...known.map((resource) => `${resource}a`)];
        for (const resource of [...known, ...fresh]) await third.register(held(resource, 2n));
        assert.equal(registered, false);
        await ours.query("COMMIT");
        await registering;
        await assert.rejects(ours.check(held(level, 1n)), /newer holder/);
      });

      test(`${level}: a transaction that began before its successor registered does not pass`, async () => {
        const { ours, theirs } = sessions;
        await ours.register(held(`${level} older`, 1n));
        await begin(ours, level);
        await ours.query(READ);
        await theirs.register(held(`${level} older`, 2n));
        await assert.rejects(ours.check(held(`${level} older`, 1n)), /newer holder|serialize/);
        await ours.query("ROLLBACK");
      });
    }

    // On MariaDB, SERIALIZABLE has no snapshot: its reads lock what they read.
    const snapshots = name === "postgres" ? LEVELS.slice(1) : ["REPEATABLE READ"];
    for (const level of snapshots) {
      for (const mark of ["is new", "is raised"]) {
        test(`${level}: a snapshot from before its own registration does not pass where the mark ${mark}`, async () => {
          const { ours, theirs } = sessions;
          const resource = `${level} own, ${mark}`;
          if (mark === "is raised") await ours.register(held(resource, 1n));
          await begin(ours, level);
          await ours.query(READ);
          await theirs.register(held(resource, 2n));
          const refused = /began before|is lost|serialize/;
          await assert.rejects(ours.check(held(resource, 2n)), refused);
          await ours.query("ROLLBACK");
        });
      }
    }
  });
}

describe("mariadb, limits", () => {
  const sessions = ground(mariadb);

  // MySQL has only the second, which also ends sessions that are idle outside of a transaction.
  for (const limit of ["idle_transaction_timeout", "wait_timeout"]) {
    test(`${limit} ends a holder that stopped after its check, and lets its successor in`, async () => {
      const { [limit === "wait_timeout" ? "third" : "ours"]: stopped, theirs } = sessions;
      await stopped.register(held(limit, 1n));
      await stopped.query(`SET SESSION ${limit} = 1`);
      await stopped.query("START TRANSACTION");
      await stopped.check(held(limit, 1n));
      await theirs.register(held(limit, 2n));
      await assert.rejects(stopped.query("COMMIT"), /ECONNRESET|closed|EPIPE|timeout/i);
    });
  }
});

describe("sqlite", () => {
  const sessions = ground(sqlite);

  test("after the check nobody else registers, and another connection is told that the file is busy", async () => {
    const { ours, theirs } = sessions;
    await ours.register(held("a", 1n));
    await ours.query("BEGIN IMMEDIATE");
    await ours.check(held("a", 1n));
    await assert.rejects(theirs.register(held("a", 2n)), /database is locked/);
    await ours.query("COMMIT");
    await theirs.register(held("a", 2n));
    await assert.rejects(ours.check(held("a", 1n)), /newer holder/);
  });

  // In a plain BEGIN, which takes its snapshot at the first read. Each on a connection of its own: with
  // libsql, a statement that failed keeps its old snapshot open.
  for (const [whose, token, who] of [
    ["its successor's", 1n, "ours"],
    ["its own", 2n, "third"],
  ] as const) {
    test(`a snapshot from before ${whose} registration does not pass`, async () => {
      const { [who]: session, theirs } = sessions;
      const resource = `before ${whose}`;
      await session.register(held(resource, 1n));
      await session.query("BEGIN");
      await session.query(READ);
      await theirs.register(held(resource, 2n));
      await assert.rejects(session.check(held(resource, token)), /database is locked/);
      await session.query("ROLLBACK");
    });
  }
});

describe("postgres, by transaction()", () => {
  let server: PostgresServer;
  let client: pg.Client;
  before(async () => {
    server = await startPostgres();
    client = new pg.Client(server.url);
    await client.connect();
    await client.query(`${TABLE}; CREATE TABLE sales (id int PRIMARY KEY, buyer text)`);
  });
  after(async () => {
    await client.end();
    await server.stop();
  });

  test("a transaction whose COMMIT was answered with ROLLBACK is a failure", async () => {
    const lease = held("a", 5n);
    await register(client, lease);
    const sell = (id: number) => client.query("INSERT INTO sales VALUES ($1, 'ada')", [id]);
    await transaction(client, lease, async () => {
      await sell(1);
    });
    const selling = transaction(client, lease, async () => {
      await sell(2);
      await sell(1).catch(() => {}); // "it is there already" ends the transaction nevertheless
    });
    await assert.rejects(selling, /nothing was written/);
    const { rows } = await client.query("SELECT id FROM sales");
    assert.deepEqual(rows, [{ id: 1 }]);
    const sold = await transaction(client, lease, async () => (await sell(2)).rowCount);
    assert.equal(sold, 1, "a transaction returns what its function returns");
  });

  test("a session that the server ends in an idle transaction does not end the process", async () => {
    const pool = new pg.Pool({
      ...{ connectionString: server.url, max: 1, idle_in_transaction_session_timeout: MOMENT_MS },
    });
    pool.on("error", () => assert.fail("the pool heard of a client that is lent"));
    try {
      const lease = held("b", 5n);
      await withClient(pool, (client) => register(client, lease));
      const stopped = withClient(pool, (client) =>
        transaction(client, lease, () => sleep(4 * MOMENT_MS)),
      );
      await assert.rejects(stopped, /not queryable|terminat/);
      assert.equal(pool.totalCount, 0, "the broken client is still in the pool");
      await withClient(pool, (client) => register(client, held("b", 6n)));
    } finally {
      await pool.end();
    }
  });
});
