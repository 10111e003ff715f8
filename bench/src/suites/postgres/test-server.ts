import { randomBytes } from "node:crypto";
import { startPostgres } from "@holdfast/servers";
import { init } from "holdfast/postgres";
import pg from "pg";
import type { BenchServer } from "../../measuring/suite.js";

/** One peer opens a session for each waiter, and there are up to 500 waiters. */
const SETTINGS = ["shared_preload_libraries=pg_stat_statements", "max_connections=600"];

/** Counts statements that clients sent, without those inside routines. */
const COUNT = `SELECT coalesce(sum(calls), 0)::int AS calls
  FROM pg_stat_statements JOIN pg_database ON dbid = pg_database.oid
  WHERE datname = current_database() AND query NOT LIKE '%pg_stat_statements%'`;

const PLANT = `
  INSERT INTO holdfast.resources (name) SELECT 'planted-' || i FROM generate_series(1, $1) i;
  INSERT INTO holdfast.grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
      expires_at, label)
    SELECT gen_random_uuid(), 'planted-' || i, false, 0, nextval('holdfast.tokens'), 1, 3600000, 0,
        now() + interval '1 hour', 'planted'
      FROM generate_series(1, $1) i;
  ANALYZE`;

/** Without fsync, because the bench does not compare disks. */
export function startServer() {
  return startPostgres({ settings: SETTINGS });
}

/** Starts a PostgreSQL. */
export async function startTestServer(): Promise<BenchServer> {
  const server = await startServer();
  const stop = () => server.stop();
  try {
    return await openTestServer(server.url, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Creates a database on a running server, with a connection that only reads. */
export async function openTestServer(
  serverUrl: string,
  end = async (): Promise<void> => {},
): Promise<BenchServer> {
  const name = `bench_${randomBytes(6).toString("hex")}`;
  const founder = await connected(serverUrl);
  await founder.query(`CREATE DATABASE ${name}`);
  await founder.end();
  const url = new URL(name, serverUrl).href;
  const client = await connected(url);
  await client.query("CREATE EXTENSION pg_stat_statements");
  await init(client);
  return {
    url,
    roundTrip: () => client.query("SELECT 1"),
    calls: async () => (await client.query<{ calls: number }>(COUNT)).rows[0]!.calls,
    plant: (count) => client.query(PLANT.replaceAll("$1", String(count))),
    async [Symbol.asyncDispose]() {
      await client.end();
      await end();
    },
  };
}

async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  // When the server is gone, the next query rejects. The event adds nothing.
  client.on("error", () => {});
  await client.connect();
  return client;
}
