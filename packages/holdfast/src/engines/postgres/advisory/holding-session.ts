import { randomBytes } from "node:crypto";
import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError, UnsupportedError } from "../../../errors.js";
import { borrow, type PgOwnClient, type PgPool, returnSession } from "../sessions/client.js";
import { lost, notConnected } from "../sessions/failure.js";
import { SerialExecutor } from "../sessions/serial-executor.js";

const CONNECT_WITHIN_MS = 5_000;
const POOLER_IN_BETWEEN =
  "session locks need a dedicated session, but a transaction pooler is in between; connect to " +
  'PostgreSQL directly, or use hold: "rows"';

export type Repair = (
  error: unknown,
  ask: (text: string, values: unknown[]) => Promise<unknown>,
) => Promise<void>;

/** One session that holds all locks of an engine. The locks end with it. */
export class HoldingSession {
  /** The key of the lock with which this session proves that it is alive. */
  readonly id = randomBytes(8).readBigInt64BE();
  readonly #client: PgOwnClient;
  readonly #serial = new SerialExecutor();
  #pid = 0;
  #ended = false;

  private constructor(client: PgOwnClient) {
    this.#client = client;
  }

  get pid(): number {
    return this.#pid;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /**
   * onEnd is called once, as soon as the connection is known to be lost. Opening has a time limit.
   * A connection that opens later than that is closed, because nobody wants it any more.
   */
  static async open(
    createClient: () => PgOwnClient,
    pool: PgPool,
    onEnd: (session: HoldingSession) => void,
  ): Promise<HoldingSession> {
    const client = createClient();
    const session = new HoldingSession(client);
    const end = () => {
      if (session.#ended) return;
      session.#ended = true;
      client.end().catch(() => {});
      onEnd(session);
    };
    client.on("error", end);
    client.on("end", end);
    const opening = session.#open(pool);
    try {
      await within(CONNECT_WITHIN_MS, opening);
      return session;
    } catch (error) {
      end();
      const discard = () => client.connection?.stream?.destroy?.();
      opening.then(discard, discard);
      throw error instanceof UnsupportedError ? error : notConnected(error);
    }
  }

  async #open(pool: PgPool): Promise<void> {
    await this.#client.connect();
    await this.#refusePooler(pool);
    const text = "SELECT pg_try_advisory_lock($1) AS answer, pg_backend_pid() AS pid";
    await this.query(text, [String(this.id)], CONNECT_WITHIN_MS);
    // A held lease alone does not keep a process alive; a call in flight has a timer that does.
    this.#client.unref?.();
  }

  /**
   * Statements run in the order in which they are sent. onLate gets an answer that arrives after
   * limitMs, when the caller was already told that there was none. repair runs after a failed
   * statement, however late, and before the next one; it is passed a function that queries the
   * session.
   */
  query<Row>(
    text: string,
    values: unknown[],
    limitMs: number,
    onLate: (rows: Row[]) => void = ignore,
    repair: Repair = async () => {},
  ): Promise<Row[]> {
    if (this.#ended) return Promise.reject(notConnected(new Error("the session has ended")));
    return new Promise((resolve, reject) => {
      let late = false;
      const silent = () => {
        late = true;
        reject(lost("the statement is still under way"));
      };
      const timer = systemClock.timer(limitMs, silent, false);
      const ask = (text: string, values: unknown[]) => this.#client.query(text, values);
      const askAndRepair = async () => {
        try {
          return await ask(text, values);
        } catch (error) {
          if (!this.#ended) await repair(error, ask);
          throw error;
        }
      };
      this.#serial
        .run(askAndRepair)
        .then(({ rows }) => (late ? onLate(rows as Row[]) : resolve(rows as Row[])), reject)
        .finally(() => timer.cancel());
    });
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#client.end().catch(() => {});
  }

  /**
   * A connection inside a transaction has a server session for itself. If that session is ours, or
   * ours is another one now, a pooler in between lends sessions out. Every later call compares the
   * session's pid again.
   */
  async #refusePooler(pool: PgPool): Promise<void> {
    this.#pid = await this.#pidNow();
    const other = await borrow(pool);
    try {
      await other.query("BEGIN");
      const theirs = Number((await other.query("SELECT pg_backend_pid() AS pid")).rows[0].pid);
      // Throws at once: if the pooler has no other session, ours would wait for the end of this
      // transaction.
      if (theirs === this.#pid) throw new UnsupportedError(POOLER_IN_BETWEEN);
      const now = await this.#pidNow();
      await other.query("COMMIT");
      if (now !== this.#pid) throw new UnsupportedError(POOLER_IN_BETWEEN);
      returnSession(other);
    } catch (error) {
      returnSession(other, true);
      throw error;
    }
  }

  async #pidNow(): Promise<number> {
    const text = "SELECT pg_backend_pid() AS pid";
    const [row] = await this.query<{ pid: number }>(text, [], CONNECT_WITHIN_MS);
    return Number(row?.pid);
  }
}

export function isAnotherSession(error: unknown): boolean {
  return (error as { code?: string } | null)?.code === "HF001";
}

export function poolerInBetween(): EngineError {
  return new EngineError(POOLER_IN_BETWEEN, { effect: "none", retryable: false });
}

function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error("no answer in time"));
    const timer = systemClock.timer(limitMs, late, false);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

function ignore(): void {}
