// The three databases of statements.test.ts behind one shape, each with its own statements.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startMariadb, startPostgres } from "@holdfast/servers";
import mysql from "mysql2/promise";
import pg from "pg";
import { openSqlite } from "../open-sqlite.js";
import type { Held } from "./mark.js";
import * as inMysql from "./mysql.js";
import * as inPostgres from "./postgres.js";
import * as inSqlite from "./sqlite.js";

type Row = Readonly<Record<string, unknown>>;

/** One connection. */
export interface Session {
  register(lease: Held): Promise<void>;
  check(lease: Held): Promise<void>;
  query(sql: string): Promise<readonly Row[]>;
  close(): Promise<void>;
}

export interface Database {
  open(): Promise<Session>;
  stop(): Promise<void>;
}

export async function postgres(): Promise<Database> {
  const server = await startPostgres();
  return prepared(
    inPostgres.TABLE,
    () => server.stop(),
    async () => {
      const client = new pg.Client(server.url);
      await client.connect();
      return {
        register: (lease) => inPostgres.register(client, lease),
        check: (lease) => inPostgres.check(client, lease),
        query: async (sql) => (await client.query(sql)).rows,
        close: () => client.end(),
      };
    },
  );
}

export async function mariadb(): Promise<Database> {
  const server = await startMariadb();
  let opened = 0;
  return prepared(
    inMysql.TABLE,
    () => server.stop(),
    async () => {
      // Two services need not have the same character set.
      const charset = opened++ % 2 === 0 ? "utf8mb4_unicode_ci" : "latin1_swedish_ci";
      const connection = await mysql.createConnection({ uri: server.url, charset });
      return {
        register: (lease) => inMysql.register(connection, lease),
        check: (lease) => inMysql.check(connection, lease),
        query: async (sql) => (await connection.query(sql))[0] as Row[],
        // An ended session has nobody left to say goodbye to.
        close: async () => connection.destroy(),
      };
    },
  );
}

export async function sqlite(): Promise<Database> {
  const folder = mkdtempSync(join(tmpdir(), "fence-"));
  const stop = async () => rmSync(folder, { recursive: true });
  return prepared(`PRAGMA journal_mode = WAL; ${inSqlite.TABLE}`, stop, async () => {
    const database = openSqlite(join(folder, "data.db"));
    return {
      register: async (lease) => inSqlite.register(database, lease),
      check: async (lease) => inSqlite.check(database, lease),
      query: async (sql) => {
        if (/^SELECT/.test(sql)) return database.prepare(sql).all() as Row[];
        database.exec(sql);
        return [];
      },
      close: async () => database.close(),
    };
  });
}

async function prepared(
  tables: string,
  stop: () => Promise<void>,
  open: () => Promise<Session>,
): Promise<Database> {
  const sessions: Session[] = [];
  const database: Database = {
    async open() {
      const session = await open();
      sessions.push(session);
      return session;
    },
    async stop() {
      for (const session of sessions) await session.close();
      await stop();
    },
  };
  await (await database.open()).query(tables);
  return database;
}
