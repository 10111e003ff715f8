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

// One wait for the disk per so many tokens; what a power cut leaves unused is never used.
const TOKEN_BLOCK = 2 ** 20;
const OPENING_TIMEOUT_MS = 10_000;
// A transaction takes some 50 µs, so a busy file is worth a few immediate attempts before a pause.
const IMMEDIATE_RETRIES = 30;
const LONGEST_PAUSE_MS = 8;

/** Opens the file, makes it if need be, and reserves tokens in it where the disk must be waited for. */
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

  /** A connection as `ready` makes use of it. Where the file is busy, or moves, it is tried again. */
  async open<T>(ready: (client: SqlClient, files: DatabaseFiles) => T): Promise<T> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    for (let attempts = 0; ; attempts++) {
      let client: SqlClient | null = null;
      let files: DatabaseFiles | null = null;
      try {
        files = await this.#locate();
        client = await this.#openDatabase(this.#terms, "quick");
        if (!isInitialized(client, this.#boot)) await this.#init();
        return ready(client, files);
      } catch (error) {
        client?.close();
        // A file that was replaced meanwhile is opened again; so is one on an overlay file system
        // that got another inode because it was opened for writing.
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

  /** Makes the file if need be: which one a connection has open is known only if it was there before. */
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
      initSchema(client, this.#terms.path, this.#boot);
      client.prepare(sql.counterNewBoot).run(this.#boot);
      client.prepare(sql.counterReserve).run(TOKEN_BLOCK);
    });
  }

  /** A transaction on a connection of its own, which waits for the disk. */
  async #durably(work: (client: SqlClient) => void): Promise<void> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    const client = await this.#openDatabase(this.#terms, "durable");
    try {
      for (let attempts = 0; ; attempts++) {
        try {
          client.exec("BEGIN IMMEDIATE");
          break;
        } catch (error) {
          if (!isBusy(error) || this.#clock.now() >= until) throw error;
        }
        await backOff(this.#clock, attempts);
      }
      try {
        work(client);
        client.exec("COMMIT");
      } catch (error) {
        // A binding may keep a closed connection until its statements are collected, and with it
        // the write lock of whatever it left open.
        rollBackQuietly(() => client.exec("ROLLBACK"));
        throw error;
      }
    } finally {
      client.close();
    }
  }
}

/** SQLite may have rolled back by itself; then there is nothing left to roll back. */
export function rollBackQuietly(rollBack: () => unknown): void {
  try {
    rollBack();
  } catch (error) {
    if (resultCode(error) === null) throw error;
  }
}

/** Lets others have their turn with the file, without stopping this process. */
export async function backOff(clock: Clock, attempts: number): Promise<void> {
  if (attempts < IMMEDIATE_RETRIES) return new Promise((again) => setImmediate(again));
  // Random, so that processes that met once do not meet again and again; and longer each time.
  const longestMs = Math.min(LONGEST_PAUSE_MS, 1 + (attempts - IMMEDIATE_RETRIES) / 4);
  return sleep(clock, randomInt(1_000, Math.round(longestMs * 1_000) + 1) / 1_000, undefined);
}

export function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE.BUSY || code === SQLITE.LOCKED;
}
