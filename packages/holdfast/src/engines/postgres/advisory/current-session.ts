import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { PgOwnClient, PgPool } from "../sessions/client.js";
import { HoldingSession } from "./holding-session.js";

const CLOSE_TIMEOUT_MS = 1_000;

/** The session that holds all locks now. It is opened when first needed, and anew after its end. */
export class CurrentSession {
  readonly #createClient: () => PgOwnClient;
  readonly #pool: PgPool;
  readonly #ready: () => Promise<void>;
  readonly #onEnd: () => void;
  #opening: Promise<HoldingSession> | null = null;
  /** The session that #opening resolved to. */
  #session: HoldingSession | null = null;
  #closed = false;

  /** ready: called before a session is opened. onEnd: called when a session ends with its locks. */
  constructor(
    createClient: () => PgOwnClient,
    pool: PgPool,
    ready: () => Promise<void>,
    onEnd: () => void,
  ) {
    this.#createClient = createClient;
    this.#pool = pool;
    this.#ready = ready;
    this.#onEnd = onEnd;
  }

  /** The current session, or a new one if there is none. */
  get(): Promise<HoldingSession> {
    this.#opening ??= this.#begin();
    return this.#opening;
  }

  /** Called when a session has ended, by itself or because it could not be repaired. */
  ended(session: HoldingSession): void {
    // A session that never held anything: the caller that opens it gets an error.
    if (session !== this.#session) return;
    this.#session = null;
    this.#opening = null;
    this.#onEnd();
  }

  /** A session that is still opening closes itself once it is open. */
  async close(): Promise<void> {
    this.#closed = true;
    const opened = this.#opening?.catch(() => {});
    await Promise.race([opened, sleep(systemClock, CLOSE_TIMEOUT_MS, undefined, false)]);
    this.#session?.close();
  }

  #begin(): Promise<HoldingSession> {
    const begun = this.#open();
    begun.catch(() => {
      if (this.#opening === begun) this.#opening = null;
    });
    return begun;
  }

  async #open(): Promise<HoldingSession> {
    await this.#ready();
    const session = await HoldingSession.open(this.#createClient, this.#pool, (one) =>
      this.ended(one),
    );
    if (this.#closed) {
      session.close();
      throw closedError();
    }
    if (session.ended) {
      const effect = { effect: "none", retryable: true } as const;
      throw new EngineError("the session ended at once", effect);
    }
    this.#session = session;
    return session;
  }
}

export function closedError(): EngineError {
  return new EngineError("the postgres engine was closed", { effect: "none", retryable: false });
}
