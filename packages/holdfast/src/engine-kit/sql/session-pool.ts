import { systemClock } from "../../core/runtime/clock.js";
import { EngineError } from "../../errors.js";

/**
 * The share of a call's time limit that may be spent on waiting for a session. A caller whose own
 * limit has passed no longer listens to us, and would have to assume that the request was sent. So
 * this wait ends earlier.
 */
const SHARE_OF_LIMIT = 0.9;

/** Lends sessions of a pool, and waits for one no longer than the caller does. */
export class SessionPool<Session> {
  readonly #borrow: () => Promise<Session>;
  readonly #returnSession: (session: Session) => void;
  readonly #server: string;
  /**
   * Whether the last answer of the pool was a session. If so, a missing session means that all are
   * in use; if not, that the server cannot be reached.
   */
  #lastBorrowSucceeded = false;

  /** server: the name of the server in messages. */
  constructor(
    borrow: () => Promise<Session>,
    returnSession: (session: Session) => void,
    server: string,
  ) {
    this.#borrow = borrow;
    this.#returnSession = returnSession;
    this.#server = server;
  }

  /** Rejects before limitMs has passed, and then nothing was sent. */
  borrow(limitMs: number): Promise<Session> {
    const startedAt = systemClock.now();
    return new Promise((resolve, reject) => {
      let isLate = false;
      const late = () => {
        isLate = true;
        reject(this.#timeout(systemClock.now() - startedAt));
      };
      const timer = systemClock.timer(Math.max(0, limitMs * SHARE_OF_LIMIT), late, false);
      this.#borrow().then(
        (session) => {
          timer.cancel();
          this.#lastBorrowSucceeded = true;
          // The caller has given up.
          if (isLate) this.#returnSession(session);
          else resolve(session);
        },
        (error: unknown) => {
          timer.cancel();
          this.#lastBorrowSucceeded = false;
          reject(error);
        },
      );
    });
  }

  #timeout(afterMs: number): EngineError {
    const ms = Math.round(afterMs);
    const known = { effect: "none", retryable: true } as const;
    return this.#lastBorrowSucceeded
      ? new EngineError(
          `all connections of the pool were in use for ${ms} ms; nothing was sent`,
          known,
        )
      : new EngineError(`no connection to ${this.#server} within ${ms} ms; nothing was sent`, {
          ...known,
          reason: "unreachable",
        });
  }
}
