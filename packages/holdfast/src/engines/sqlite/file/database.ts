import { closeSync, mkdirSync, openSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { EngineError, type FailureReason } from "../../../errors.js";
import type { SqliteTerms } from "../options.js";
import { exactRow } from "../records/shapes.js";
import { sql } from "../records/sql.gen.js";
import { loadBinding, resultCode, SQLITE, type SqlClient } from "./client.js";
import { refuseSecondName } from "./database-files.js";

// "HLDF": distinguishes our files from the databases of other programs.
const APPLICATION_ID = 0x484c4446;
const SCHEMA_VERSION = 3;
// The engine waits for other writers itself. SQLite's own wait (busy_timeout) would block this
// whole process.
const CONNECTION =
  "PRAGMA busy_timeout = 0; PRAGMA foreign_keys = OFF; PRAGMA temp_store = MEMORY;";

const HEADER = `SELECT
  (SELECT application_id FROM pragma_application_id) AS application,
  (SELECT user_version FROM pragma_user_version) AS version,
  (SELECT count(*) FROM sqlite_schema) AS tables`;

/** File systems whose locks do not work between machines, or whose shared memory is not shared. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x65735546, "FUSE"],
]);

const OPENING_ERRORS: ReadonlySet<string> = new Set(["ENOENT", "EACCES", "EMFILE", "ENFILE"]);

/**
 * durable: a commit is on the disk before it is acknowledged. For the token counter.
 * quick: a power cut may lose the last commits, but never damages the file. For grants: a power cut
 * ends their holders too.
 */
export type Durability = "durable" | "quick";

/** Opens the file. The caller must check or make the schema before any other statement. */
export async function openDatabase(terms: SqliteTerms, durability: Durability): Promise<SqlClient> {
  const open = await loadBinding(terms.binding);
  // Never open the file in another way: POSIX drops all locks of this process on a file when the
  // process closes any descriptor of it.
  const folder = dirname(terms.path);
  if (terms.makeFolder) mkdirSync(folder, { recursive: true, mode: 0o700 });
  let client: SqlClient | undefined;
  try {
    if (!terms.unsafeAnyFileSystem) refuseNetworkFileSystem(statfsSync(folder).type, terms.path);
    refuseSecondName(terms.path);
    client = open(terms.path);
    client.exec(CONNECTION);
    client.exec("PRAGMA journal_mode = WAL;");
    client.exec(`PRAGMA synchronous = ${durability === "durable" ? "FULL" : "NORMAL"};`);
    // A checkpoint waits for the disk twice, so it runs only every few thousand pages.
    client.exec("PRAGMA wal_autocheckpoint = 4000;");
    return client;
  } catch (error) {
    client?.close();
    throw explain(error, terms.path);
  }
}

/**
 * Opens the file exclusively and closes it in good order. SQLite reports busy if another connection
 * has the file open, in this process or in another.
 */
export async function closeProperly(terms: SqliteTerms): Promise<void> {
  const open = await loadBinding(terms.binding);
  const client = open(terms.path);
  try {
    // This comes first: SQLite then keeps its index in its own memory and does not use -shm.
    client.exec("PRAGMA locking_mode = EXCLUSIVE;");
    client.exec(CONNECTION);
    client.exec("BEGIN IMMEDIATE");
    client.exec("COMMIT");
  } finally {
    client.close();
  }
}

/** Whether the file is ready for use: it has our schema, and a counter of this boot. */
export function isInitialized(client: SqlClient, boot: string): boolean {
  const { application, version } = readHeader(client);
  if (application !== APPLICATION_ID || version !== SCHEMA_VERSION) return false;
  const counter = client.prepare(sql.counterRead).get();
  return exactRow<{ boot: string }>("counterRead", counter).boot === boot;
}

/** Makes the tables in a new file. Refuses another program's file and another schema version. */
export function initSchema(client: SqlClient, path: string, boot: string): void {
  const { application, version, tables } = readHeader(client);
  if (application === APPLICATION_ID && version === SCHEMA_VERSION) return;
  if (application === APPLICATION_ID) {
    const todo =
      version > SCHEMA_VERSION
        ? "Upgrade holdfast in this program, or use another file"
        : "Use another file, or stop all programs that use this one and remove it";
    throw refusal(
      `"${path}" was written by another version of Holdfast (schema ${version}, this one knows ` +
        `${SCHEMA_VERSION}). ${todo}`,
    );
  }
  if (application !== 0 || tables > 0) {
    throw refusal(
      `"${path}" is a database of another program; nothing was changed in it. Use another file`,
    );
  }
  client.exec(sql.schema);
  client.prepare("INSERT INTO counter (id, next, reserved, boot) VALUES (1, 1, 1, ?)").run(boot);
  client.exec(
    `PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION};`,
  );
}

function readHeader(client: SqlClient): { application: number; version: number; tables: number } {
  return exactRow("header", client.prepare(HEADER).get());
}

export function refuseNetworkFileSystem(type: number, path: string): void {
  const name = NETWORK_FILE_SYSTEMS.get(type >>> 0);
  if (name === undefined) return;
  throw refusal(
    `"${path}" is on a network file system (${name}), where SQLite cannot lock files reliably. ` +
      "Use a local folder, or an engine made for several hosts",
  );
}

/** Turns an error of the binding or the system into one that tells a person what to do. */
export function explain(
  error: unknown,
  path: string,
  effect: "none" | "unknown" = "none",
): unknown {
  const code = resultCode(error);
  const errno = (error as NodeJS.ErrnoException).code;
  const say = (message: string, retryable = false, reason: FailureReason = "other") =>
    new EngineError(message, { effect, retryable, reason, cause: error });
  if (code === SQLITE.CANTOPEN || OPENING_ERRORS.has(errno ?? "")) {
    const { message, retryable, reason } = whyUnopenable(path);
    return say(`cannot open "${path}": ${message}`, retryable, reason);
  }
  if (code === SQLITE.NOTADB) {
    return say(`"${path}" is not an SQLite database; nothing was changed in it. Use another file`);
  }
  if (code === SQLITE.READONLY) {
    return say(
      `"${path}" cannot be written to: make the file and its folder writable for this user`,
      ...([false, "rights"] as const),
    );
  }
  if (code === SQLITE.FULL) {
    return say(`the disk under "${path}" is full; nothing was changed`, true);
  }
  if (code === SQLITE.CORRUPT) {
    return say(`"${path}" is damaged. Stop all its users, remove the file, and start them again`);
  }
  if (code === SQLITE.BUSY || code === SQLITE.LOCKED) {
    return say(`"${path}" is being written to by another process`, true);
  }
  if (code !== null) {
    return new EngineError(`SQLite failed on "${path}": ${(error as Error).message}`, {
      effect: code === SQLITE.IOERR ? "unknown" : effect,
      retryable: code === SQLITE.IOERR,
      cause: error,
    });
  }
  return error;
}

function refusal(message: string): EngineError {
  return new EngineError(message, { effect: "none", retryable: false });
}

interface Unopenable {
  readonly message: string;
  readonly retryable?: boolean;
  readonly reason?: FailureReason;
}

/**
 * SQLite says only that it could not open the file. The reason is looked for at the folder, because
 * opening and closing the file itself would drop this process's locks on it.
 */
function whyUnopenable(path: string): Unopenable {
  const folder = dirname(path);
  try {
    if (!statSync(folder).isDirectory()) return { message: `"${folder}" is not a folder` };
    closeSync(openSync(folder, "r"));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      return { message: `its folder does not exist. Make it: mkdir -p "${folder}"` };
    }
    if (code === "EMFILE" || code === "ENFILE") {
      const whose = code === "EMFILE" ? "this process has" : "all processes together have";
      const limit = code === "EMFILE" ? " (ulimit -n)" : "";
      return { message: `${whose} too many files open${limit}`, retryable: true };
    }
  }
  const message = "make the file and its folder readable and writable for this user";
  return { message, reason: "rights" };
}
