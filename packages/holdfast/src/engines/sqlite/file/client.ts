import { importPeer } from "../../../core/input/import-peer.js";
import { MissingPeerError } from "../../../errors.js";

/**
 * The part of an SQLite binding that this engine needs. It is synchronous, as both bindings are.
 */
export interface SqlClient {
  exec(sql: string): void;
  prepare(sql: string): PreparedStatement;
  close(): void;
}

export interface PreparedStatement {
  get(...params: readonly Value[]): unknown;
  all(...params: readonly Value[]): unknown[];
  run(...params: readonly Value[]): { readonly changes: number | bigint };
}

export type Value = string | number | null;
export type Binding = "node:sqlite" | "libsql";

/** The result codes of SQLite's C interface that this engine reads. */
export const SQLITE = {
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  NOTADB: 26,
} as const;

type Open = (path: string) => SqlClient;
type LibsqlModule = { readonly default: new (path: string) => SqlClient };

/**
 * Loads Node's own SQLite where it has one, else the prebuilt libsql package. Nothing is compiled.
 */
export async function loadBinding(wanted?: Binding): Promise<Open> {
  const own = wanted === "libsql" ? undefined : nodeSqlite();
  if (own !== undefined) return (path) => new own.DatabaseSync(path);
  let cause: unknown;
  try {
    const libsql = await importPeer<LibsqlModule>("libsql");
    if (libsql !== null) return (path) => new libsql.default(path);
  } catch (error) {
    // The package is installed, but its binary is missing or made for another machine.
    cause = error;
  }
  throw new MissingPeerError(
    `Node ${process.versions.node} has no built-in SQLite, and the package "libsql" is not ` +
      "installed. Run: npm install libsql (or use Node 22.13 or later)",
    { cause },
  );
}

/** The primary result code of an error of either binding; null if it is not an SQLite error. */
export function resultCode(error: unknown): number | null {
  if (typeof error !== "object" || error === null) return null;
  const { errcode, rawCode, message } = error as Record<string, unknown>;
  const code = [errcode, rawCode].find((value) => typeof value === "number") as number | undefined;
  if (code !== undefined) return code & 0xff;
  // For a file that it cannot open, libsql puts the code only into the message.
  const said = /Unable to open connection to local database .*: (\d+)"\)$/s.exec(String(message));
  return said ? Number(said[1]) & 0xff : null;
}

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => SqlClient;
}

/** Loads node:sqlite without its "experimental" warning: our user did not choose this module. */
function nodeSqlite(): NodeSqlite | undefined {
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning: string | Error, ...rest: never[]) => {
    if (!String(warning).includes("SQLite is an experimental feature")) {
      emitWarning.call(process, warning, ...rest);
    }
  };
  try {
    return process.getBuiltinModule("node:sqlite") as NodeSqlite | undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}
