import { type Clock, hostInstant } from "../../../core/runtime/clock.js";
import type { Call } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { type PreparedStatement, resultCode, SQLITE, type SqlClient } from "../file/client.js";
import { explain, openDatabase } from "../file/database.js";
import type { DatabaseFiles } from "../file/database-files.js";
import { backOff, isBusy, Opening, rollBackQuietly } from "../file/opening.js";
import { readProcessIdentity } from "../file/process-identity.js";
import type { SqliteTerms } from "../options.js";
import { LockTables, TokensUsedUp } from "./lock-tables.js";

interface Opened {
  readonly client: SqlClient;
  readonly files: DatabaseFiles;
  readonly tables: LockTables;
  readonly begin: PreparedStatement;
  readonly commit: PreparedStatement;
  readonly rollback: PreparedStatement;
}

/** Runs transactions on the file. They wait for the write lock without blocking the process. */
export class Store {
  readonly #terms: SqliteTerms;
  readonly #peer: string;
  readonly #clock: Clock;
  readonly #onCommit: (tables: LockTables, since: number) => void;
  readonly #identity = readProcessIdentity();
  readonly #opening: Opening;
  #pendingOpen: Promise<Opened> | null = null;
  #opened: Opened | null = null;
  #closed = false;

  constructor(
    terms: SqliteTerms,
    peer: string,
    clock: Clock,
    onCommit: (tables: LockTables, since: number) => void,
    open = openDatabase,
  ) {
    this.#terms = terms;
    this.#peer = peer;
    this.#clock = clock;
    this.#onCommit = onCommit;
    this.#opening = new Opening(terms, this.#identity.boot, clock, open);
  }

  async open(): Promise<void> {
    await this.#open();
  }

  /** Whether the last transaction found that the path leads to another file or to none. */
  get isFileReplaced(): boolean {
    return this.#opened?.files.verified === false;
  }

  /**
   * Runs work in one write transaction. While another process writes, this one tries again until
   * the call's time is over; then it fails without effect.
   */
  async transact<T>(call: Call, work: (tables: LockTables) => T): Promise<T> {
    this.#refuseWhenClosed();
    const opened = this.#opened ?? (await this.#open());
    const until = this.#clock.now() + call.timeoutMs;
    for (let attempts = 0; ; attempts++) {
      this.#refuseWhenClosed();
      try {
        return this.#attempt(opened, work);
      } catch (error) {
        if (error instanceof TokensUsedUp) {
          await this.#opening.reserveTokens();
        } else if (isBusy(error) && this.#clock.now() < until) {
          await backOff(this.#clock, attempts);
        } else {
          throw explain(error, this.#terms.path);
        }
      }
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    const opened = this.#opened ?? (await this.#pendingOpen?.catch(() => null)) ?? null;
    if (opened !== null) {
      const call = { startedAt: this.#clock.now(), timeoutMs: 1_000, order: 0 };
      // If this fails, our row in peers does no harm. A process that opens the file after this
      // process has ended removes it.
      await this.transact(call, (tables) => tables.peers.leave()).catch(() => {});
    }
    this.#closed = true;
    this.#opened = null;
    this.#pendingOpen = null;
    opened?.client.close();
  }

  #attempt<T>(
    { files, tables, begin, commit, rollback }: Opened,
    work: (tables: LockTables) => T,
  ): T {
    const since = this.#clock.now();
    begin.run();
    let answer: T;
    try {
      const now = hostInstant();
      files.verify(now);
      tables.start(now);
      answer = work(tables);
    } catch (error) {
      rollBackQuietly(() => rollback.run());
      throw error;
    }
    try {
      commit.run();
    } catch (error) {
      rollBackQuietly(() => rollback.run());
      // A full disk commits nothing. After any other failure here the effect is unknown.
      const full = resultCode(error) === SQLITE.FULL;
      throw isBusy(error) ? error : explain(error, this.#terms.path, full ? "none" : "unknown");
    }
    this.#onCommit(tables, since);
    return answer;
  }

  #open(): Promise<Opened> {
    this.#pendingOpen ??= this.#opening
      .open((client, files) => this.#ready(client, files))
      .catch((error: unknown) => {
        // The cause may be repaired later, so the next call tries to open the file again.
        this.#pendingOpen = null;
        throw error;
      });
    return this.#pendingOpen;
  }

  /** Prepares the statements, and returns the first transaction. */
  #ready(client: SqlClient, files: DatabaseFiles): () => Opened {
    const opened = {
      client,
      files,
      tables: new LockTables(client, this.#identity, this.#peer),
      begin: client.prepare("BEGIN IMMEDIATE"),
      commit: client.prepare("COMMIT"),
      rollback: client.prepare("ROLLBACK"),
    };
    // With a hundred processes on the file, this takes milliseconds, and so happens while others
    // can write.
    const dead = opened.tables.peers.provenDead();
    return () => {
      this.#attempt(opened, (tables) => {
        tables.peers.recordHeartbeat(null);
        tables.sweep(dead);
      });
      this.#opened = opened;
      return opened;
    };
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError("the sqlite engine was closed", { effect: "none", retryable: false });
  }
}
