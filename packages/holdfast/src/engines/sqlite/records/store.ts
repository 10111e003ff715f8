import { type Clock, hostInstant } from "../../../core/runtime/clock.js";
import type { Call } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { resultCode, SQLITE, type SqlClient, type Statement } from "../file/client.js";
import { explain, openDatabase } from "../file/database.js";
import type { DatabaseFiles } from "../file/database-files.js";
import { readHost } from "../file/host.js";
import { giveWay, isBusy, Opening, rollBackQuietly } from "../file/opening.js";
import type { SqliteTerms } from "../options.js";
import { Ledger, TokensUsedUp } from "./lock-tables.js";

interface Opened {
  readonly client: SqlClient;
  readonly files: DatabaseFiles;
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
  readonly #opener: Opening;
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
    this.#opener = new Opening(terms, this.#host.boot, clock, open);
  }

  async open(): Promise<void> {
    await this.#open();
  }

  /** Whether the last transaction found that the path leads to another file, or to none. */
  get isCutOff(): boolean {
    return this.#opened?.files.verified === false;
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
          await this.#opener.reserveTokens();
        } else if (isBusy(error) && this.#clock.now() < until) {
          await giveWay(this.#clock, looks);
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
      const call = { startedAt: this.#clock.now(), timeoutMs: 1_000, order: 0 };
      // A row that says who we were does no harm; the next process that opens the file clears it.
      await this.transact(call, (ledger) => ledger.peers.leave()).catch(() => {});
    }
    this.#closed = true;
    this.#opened = null;
    this.#opening = null;
    opened?.client.close();
  }

  #once<T>({ files, ledger, begin, commit, rollback }: Opened, work: (ledger: Ledger) => T): T {
    const since = this.#clock.now();
    begin.run();
    let answer: T;
    try {
      const now = hostInstant();
      files.verify(now);
      ledger.start(now);
      answer = work(ledger);
    } catch (error) {
      rollBackQuietly(() => rollback.run());
      throw error;
    }
    try {
      commit.run();
    } catch (error) {
      rollBackQuietly(() => rollback.run());
      // A full disk takes nothing; of any other failure at this point nobody can say.
      const full = resultCode(error) === SQLITE.FULL;
      throw isBusy(error) ? error : explain(error, this.#terms.path, full ? "none" : "unknown");
    }
    this.#onCommit(ledger, since);
    return answer;
  }

  #open(): Promise<Opened> {
    this.#opening ??= this.#opener
      .open((client, files) => this.#ready(client, files))
      .catch((error: unknown) => {
        // What kept the file from opening may be mended; the next call finds out.
        this.#opening = null;
        throw error;
      });
    return this.#opening;
  }

  #ready(client: SqlClient, files: DatabaseFiles): Opened {
    const opened = {
      client,
      files,
      ledger: new Ledger(client, this.#host, this.#peer),
      begin: client.prepare("BEGIN IMMEDIATE"),
      commit: client.prepare("COMMIT"),
      rollback: client.prepare("ROLLBACK"),
    };
    this.#once(opened, (ledger) => {
      ledger.peers.beat(null);
      ledger.sweep();
    });
    this.#opened = opened;
    return opened;
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError("the sqlite engine was closed", { effect: "none", retryable: false });
  }
}
