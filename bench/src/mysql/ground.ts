import { randomBytes } from "node:crypto";
import { startMariadb } from "@holdfast/servers";
import { createSchema } from "holdfast/mysql";
import mysql, { type RowDataPacket } from "mysql2/promise";
import type { Ground } from "../suite.js";

/** A MariaDB of its own, which leaves its log to be flushed later: the disk is not what is compared. */
export async function startGround(): Promise<Ground> {
  const server = await startMariadb();
  const stop = () => server.stop();
  try {
    return await openGround(server.url, stop);
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A database of its own on a server that is there, and a connection that only looks. */
export async function openGround(
  serverUrl: string,
  end = async (): Promise<void> => {},
): Promise<Ground> {
  const name = `bench_${randomBytes(6).toString("hex")}`;
  const founder = await mysql.createConnection(serverUrl);
  await founder.query(`CREATE DATABASE ${name} CHARACTER SET utf8mb4`);
  await founder.end();
  const url = new URL(name, serverUrl).href;
  const pool = mysql.createPool({ uri: url, connectionLimit: 1 });
  await createSchema(pool);
  let own = 0;
  const ask = async (text: string) => {
    own++;
    return (await pool.query<RowDataPacket[]>(text))[0];
  };
  return {
    url,
    roundTrip: () => ask("SELECT 1"),
    async calls() {
      // Of all clients: what runs inside a routine is not counted, what this connection asks is.
      const [row] = await ask("SHOW GLOBAL STATUS LIKE 'Questions'");
      return Number(row!.Value) - own;
    },
    async [Symbol.asyncDispose]() {
      await pool.end();
      await end();
    },
  };
}
