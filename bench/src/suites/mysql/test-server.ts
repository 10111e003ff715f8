import { randomBytes } from "node:crypto";
import { startMariadb } from "@holdfast/servers";
import { init } from "holdfast/mysql";
import mysql, { type RowDataPacket } from "mysql2/promise";
import type { BenchServer } from "../../measuring/suite.js";

const PLANT = [
  `INSERT INTO holdfast_resources (name, last_token, used_us)
     SELECT CONCAT('planted-', seq), seq, holdfast_now_us(UTC_TIMESTAMP(6)) FROM seq_1_to_$1`,
  `INSERT INTO holdfast_grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
       expires_us, label)
     SELECT UNHEX(MD5(seq)), CONCAT('planted-', seq), 0, 0, seq, 1, 3600000, 0,
       holdfast_now_us(UTC_TIMESTAMP(6)) + 3600000000, 'planted' FROM seq_1_to_$1`,
  "ANALYZE TABLE holdfast_grants, holdfast_resources",
];

/** Starts a MariaDB that flushes its log later, because the bench does not compare disks. */
export async function startTestServer(): Promise<BenchServer> {
  const server = await startMariadb();
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
  const founder = await mysql.createConnection(serverUrl);
  await founder.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  await founder.end();
  const url = new URL(name, serverUrl).href;
  const pool = mysql.createPool({ uri: url, connectionLimit: 1 });
  await init(pool);
  let own = 0;
  const ask = async (text: string) => {
    own++;
    return (await pool.query<RowDataPacket[]>(text))[0];
  };
  return {
    url,
    roundTrip: () => ask("SELECT 1"),
    async calls() {
      // Counts all clients, without statements inside routines. This connection's own are
      // subtracted.
      const [row] = await ask("SHOW GLOBAL STATUS LIKE 'Questions'");
      return Number(row!.Value) - own;
    },
    async plant(count) {
      for (const text of PLANT) await ask(text.replaceAll("$1", String(count)));
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      await end();
    },
  };
}
