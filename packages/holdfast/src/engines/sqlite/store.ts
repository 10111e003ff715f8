import { randomInt } from "node:crypto";
import { type Clock, hostInstant, sleep } from "../../clock.js";
import type { Call } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { resultCode, SQLITE, type SqlClient, type Statement } from "./client.js";
import { explain, isPrepared, openDatabase, prepareSchema } from "./database.js";
import { readHost } from "./host.js";
import { Ledger, TokensUsedUp } from "./ledger.js";
import type { SqliteTerms } from "./options.js";
import { sql } from "./sql.gen.js";

// One wait for the disk per so many tokens; what a power cut leaves unused is never used.
const TOKEN_BLOCK = 2 ** 20;
const OPENING_TIMEOUT_MS = 10_000;
// A transaction takes some 50 µs, so a busy file is worth a few immediate looks before a pause.
const IMMEDIATE_LOOKS = 30;
const LONGEST_PAUSE_MS = 8;

interface Opened {
  readonly client: SqlClient;
  readonly ledger: Ledger;
  readonly begin: Statement;
  readonly commit: Statement;
  readonly rollback: Statement;
}

/** The file, and transactions on it that wait for their turn without stopping the process. */
export class Store {
  readonly #terms: SqliteTerms;
  readonly #peer: string;
  readonly #clock: Clock;
  readonly #onCommit: (ledger: Ledger, since: number) => void;
  readonly #host = readHost();
  readonly #openDatabase: typeof openDatabase;
  #opening: Promise<Opened> | null = null;
  #opened: Opened | null = null;
  #closed = false;

  constructor(
    terms: SqliteTerms,
    peer: string,
    clock: Clock,
    onCommit: (ledger: Ledger, since: number) => void,
    open = openDatabase,
  ) {
    this.#terms = terms;
    this.#peer = peer;
    this.#clock = clock;
    this.#onCommit = onCommit;
    this.#openDatabase = open;
  }

  async open(): Promise<void> {
    await this.#open();
  }

  /**
   * Runs work in one write transaction. While another process writes, this one looks again until
   * the call's time is over; nothing has happened then.
   */
  async transact<T>(call: Call, work: (ledger: Ledger) => T): Promise<T> {
    this.#refuseWhenClosed();
    const opened = this.#opened ?? (await this.#open());
    const until = this.#clock.now() + call.timeoutMs;
    for (let looks = 0; ; looks++) {
      this.#refuseWhenClosed();
      try {
        return this.#once(opened, work);
      } catch (error) {
        if (error instanceof TokensUsedUp) {
          await this.#durably((client) => client.prepare(sql.counterReserve).run(TOKEN_BLOCK));
        } else if (isBusy(error) && this.#clock.now() < until) {
          await this.#giveWay(looks);
        } else {
          throw explain(error, this.#terms.path);
        }
      }
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    const opened = this.#opened ?? (await this.#opening?.catch(() => null)) ?? null;
    if (opened !== null) {
      const call = { startedAt: this.#clock.now(), timeoutMs: 1_000 };
      // A row that says who we were does no harm; the next process that opens the file clears it.
      await this.transact(call, (ledger) => ledger.peers.leave()).catch(() => {});
    }
    this.#closed = true;
    this.#opened = null;
    this.#opening = null;
    opened?.client.close();
  }

  #once<T>({ ledger, begin, commit, rollback }: Opened, work: (ledger: Ledger) => T): T {
    const since = this.#clock.now();
    begin.run();
    let answer: T;
    try {
      ledger.start(hostInstant());
      answer = work(ledger);
    } catch (error) {
      rollback.run();
      throw error;
    }
    try {
      commit.run();
    } catch (error) {
      rollBackQuietly(rollback);
      // A full disk takes nothing; of any other failure at this point nobody can say.
      const full = resultCode(error) === SQLITE.FULL;
      throw isBusy(error) ? error : explain(error, this.#terms.path, full ? "none" : "unknown");
    }
    this.#onCommit(ledger, since);
    return answer;
  }

  #open(): Promise<Opened> {
    this.#opening ??= this.#openInTime().catch((error: unknown) => {
      // What kept the file from opening may be mended; the next call finds out.
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async #openInTime(): Promise<Opened> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    for (let looks = 0; ; looks++) {
      let client: SqlClient | null = null;
      try {
        client = await this.#openDatabase(this.#terms, "quick");
        if (!isPrepared(client, this.#host.boot)) {
          await this.#durably((durable) => this.#prepare(durable));
        }
        this.#opened = this.#ready(client);
        return this.#opened;
      } catch (error) {
        client?.close();
        const busy = isBusy(error) || isBusy((error as Error).cause);
        if (!busy || this.#clock.now() >= until) throw explain(error, this.#terms.path);
      }
      await this.#giveWay(looks);
    }
  }

  #ready(client: SqlClient): Opened {
    const opened = {
      client,
      ledger: new Ledger(client, this.#host, this.#peer),
      begin: client.prepare("BEGIN IMMEDIATE"),
      commit: client.prepare("COMMIT"),
      rollback: client.prepare("ROLLBACK"),
    };
    this.#once(opened, (ledger) => {
      ledger.peers.beat(null);
      ledger.sweep();
    });
    return opened;
  }

  #prepare(client: SqlClient): void {
    prepareSchema(client, this.#terms.path, this.#host.boot);
    client.prepare(sql.counterNewBoot).run(this.#host.boot);
    client.prepare(sql.counterReserve).run(TOKEN_BLOCK);
  }

  /** A transaction on a connection of its own, which waits for the disk. */
  async #durably(work: (client: SqlClient) => void): Promise<void> {
    const until = this.#clock.now() + OPENING_TIMEOUT_MS;
    const client = await this.#openDatabase(this.#terms, "durable");
    try {
      for (let looks = 0; ; looks++) {
        try {
          client.exec("BEGIN IMMEDIATE");
          break;
        } catch (error) {
          if (!isBusy(error) || this.#clock.now() >= until) throw error;
        }
        await this.#giveWay(looks);
      }
      try {
        work(client);
        client.exec("COMMIT");
      } catch (error) {
        // A binding may keep a closed connection until its statements are collected, and with it
        // the write lock of whatever it left open.
        client.exec("ROLLBACK");
        throw error;
      }
    } finally {
      client.close();
    }
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError("the sqlite engine was closed", { effect: "none", retryable: false });
  }

  async #giveWay(looks: number): Promise<void> {
    if (looks < IMMEDIATE_LOOKS) return new Promise((again) => setImmediate(again));
    // Random, so that processes that met once do not meet again and again; and longer each time.
    const longestMs = Math.min(LONGEST_PAUSE_MS, 1 + (looks - IMMEDIATE_LOOKS) / 4);
    return sleep(
      this.#clock,
      randomInt(1_000, Math.round(longestMs * 1_000) + 1) / 1_000,
      undefined,
    );
  }
}

function isBusy(error: unknown): boolean {
  const code = resultCode(error);
  return code === SQLITE.BUSY || code === SQLITE.LOCKED;
}

/** SQLite may have rolled back by itself; then there is nothing left to roll back. */
function rollBackQuietly(rollback: Statement): void {
  try {
    rollback.run();
  } catch (error) {
    if (resultCode(error) === null) throw error;
  }
}
