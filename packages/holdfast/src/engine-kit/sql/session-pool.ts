import { systemClock } from "../../core/runtime/clock.js";
import { EngineError } from "../../errors.js";

/**
 * Of the time that a call has. Whoever waits for its answer hears no word from us after that, and would have
 * to believe that the request was sent.
 */
const SHARE_OF_LIMIT = 0.9;

/** Sessions of a pool, each waited for no longer than its caller waits. */
export class SessionPool<Session> {
  readonly #borrow: () => Promise<Session>;
  readonly #returnSession: (session: Session) => void;
  readonly #server: string;
  /** Whether the last word of the pool was a session: then one that does not come is in use. */
  #lastBorrowSucceeded = false;

  /** server: as messages call it. */
  constructor(
    borrow: () => Promise<Session>,
    returnSession: (session: Session) => void,
    server: string,
  ) {
    this.#borrow = borrow;
    this.#returnSession = returnSession;
    this.#server = server;
  }

  /** Rejects in time for whoever gave it that much of it, and then nothing was sent. */
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
          // Nobody waits for it any more.
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
