import { randomInt } from "node:crypto";
import { type Clock, sleep } from "../../../core/runtime/clock.js";
import type { SqliteTerms } from "../options.js";
import { sql } from "../records/sql.gen.js";
import { resultCode, SQLITE, type SqlClient } from "./client.js";
import {
  closeProperly,
  explain,
  initSchema,
  isInitialized,
  type openDatabase,
} from "./database.js";
import {
  DatabaseFiles,
  fileReplaced,
  missingCompanion,
  refuseLeftovers,
} from "./database-files.js";

// The engine waits for the disk once per this many tokens. After a boot, the rest of a block is
// skipped.
const TOKEN_BLOCK = 2 ** 20;
const OPENING_TIMEOUT_MS = 10_000;
// A transaction takes about 50 µs, so a busy file is worth some immediate retries before a pause.
const IMMEDIATE_RETRIES = 30;
const LONGEST_PAUSE_MS = 8;

/** Opens the file, creates it if necessary, and reserves tokens in it durably. */
export class Opening {
  readonly #terms: SqliteTerms;
  readonly #boot: string;
  readonly #clock: Clock;
  readonly #openDatabase: typeof openDatabase;

  constructor(terms: SqliteTerms, boot: string, clock: Clock, open: typeof openDatabase) {
    this.#terms = terms;
    this.#boot = boot;
    this.#clock = clock;
    this.#openDatabase = open;
  }

  /**
   * Opens a connection, and runs the first transaction that `ready` returns for it. Tries again
   * while the file is busy or was replaced.
   */
  async open<T>(ready: (client: SqlClient, files: DatabaseFiles) => () => T): Promise<T> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    for (let attempts = 0; ; attempts++) {
      let client: SqlClient | null = null;
      let files: DatabaseFiles | null = null;
      try {
        files = await this.#locate();
        client = await this.#openDatabase(this.#terms, "quick");
        if (!isInitialized(client, this.#boot)) await this.#init();
        // On one connection: opening costs far more than a try, and a hundred programs that start
        // together would do little else.
        return await whileBusy(this.#clock, until, ready(client, files));
      } catch (error) {
        client?.close();
        // The file was replaced during the opening, so it is opened again. A file on an overlay
        // file system gets another inode when it is first opened for writing, and is opened again
        // too.
        const moved = files !== null && !files.areInPlace;
        const busy = isBusy(error) || isBusy((error as Error).cause);
        const again = (moved || busy) && this.#clock.now() < until;
        if (!again) throw explain(error, this.#terms.path);
      }
      await backOff(this.#clock, attempts);
    }
  }

  reserveTokens(): Promise<void> {
    return this.#durably((client) => client.prepare(sql.counterReserve).run(TOKEN_BLOCK));
  }

  /**
   * Finds the file, and creates it if necessary. It must exist before the connection is opened:
   * only then is it known which file the connection has open.
   */
  async #locate(): Promise<DatabaseFiles> {
    const { path } = this.#terms;
    const known = DatabaseFiles.at(path);
    if (known === null) {
      refuseLeftovers(path);
      await this.#init();
      return DatabaseFiles.mustBeAt(path);
    }
    const missing = missingCompanion(path);
    if (missing !== null) {
      await closeProperly(this.#terms).catch((error: unknown) => {
        throw isBusy(error) ? fileReplaced(path, missing, error) : error;
      });
    }
    return known;
  }

  #init(): Promise<void> {
    return this.#durably((client) => {
      // Another process may have done it while this one waited. Only the first waits for the disk.
      if (isInitialized(client, this.#boot)) return;
      initSchema(client, this.#terms.path, this.#boot);
      client.prepare(sql.counterNewBoot).run(this.#boot);
      client.prepare(sql.counterReserve).run(TOKEN_BLOCK);
    });
  }

  /** Runs a transaction on a separate connection whose commit waits for the disk. */
  async #durably(work: (client: SqlClient) => void): Promise<void> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    const client = await this.#openDatabase(this.#terms, "durable");
    try {
      await whileBusy(this.#clock, until, () => client.exec("BEGIN IMMEDIATE"));
      try {
        work(client);
        client.exec("COMMIT");
      } catch (error) {
        // A binding may keep a closed connection until its statements are garbage-collected. An
        // open transaction would keep the write lock for that long.
        rollBackQuietly(() => client.exec("ROLLBACK"));
        throw error;
      }
    } finally {
      client.close();
    }
  }
}

/** SQLite may have rolled back by itself. Then ROLLBACK fails, and that is no error. */
export function rollBackQuietly(rollBack: () => unknown): void {
  try {
    rollBack();
  } catch (error) {
    if (resultCode(error) === null) throw error;
  }
}

/** Repeats the work while another process writes, but not after `until`. */
async function whileBusy<T>(clock: Clock, until: number, work: () => T): Promise<T> {
  for (let attempts = 0; ; attempts++) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || clock.now() >= until) throw error;
    }
    await backOff(clock, attempts);
  }
}

/** Waits before the next attempt on a busy file, without blocking this process. */
export async function backOff(clock: Clock, attempts: number): Promise<void> {
  if (attempts < IMMEDIATE_RETRIES) return new Promise((again) => setImmediate(again));
  // Random, so that processes that collided once do not collide again; and longer each time.
  const longestMs = Math.min(LONGEST_PAUSE_MS, 1 + (attempts - IMMEDIATE_RETRIES) / 4);
  return sleep(clock, randomInt(1_000, Math.round(longestMs * 1_000) + 1) / 1_000, undefined);
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE.BUSY || code === SQLITE.LOCKED;
}
