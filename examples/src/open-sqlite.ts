import { createRequire } from "node:module";

/** The common part of Node's own SQLite and the package libsql. */
export interface Sqlite {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  close(): void;
}

export interface SqliteStatement {
  get(...values: readonly (string | number)[]): unknown;
  all(...values: readonly (string | number)[]): unknown[];
  run(...values: readonly (string | number)[]): { readonly changes: number | bigint };
}

// SQLite waits for another writer by stopping the whole process, renewals included. This is far below
// any ttl used here.
const BUSY_TIMEOUT_MS = 500;

/** Node's own SQLite where it has one, else libsql. */
export function openSqlite(path: string): Sqlite {
  type Open = new (path: string) => Sqlite;
  const own = process.getBuiltinModule("node:sqlite") as { DatabaseSync: Open } | undefined;
  const Database = own?.DatabaseSync ?? (createRequire(import.meta.url)("libsql") as Open);
  const database = new Database(path);
  database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return database;
}
