// Followers tell the leader twice a tick which sessions they heard from. A session lives at least
// two ticks with the usual settings, and four here, so this part of the timeout is long enough.
const TOLD_WITHIN = 1 / 8;
// The interval of keepalives, as a part of the timeout.
const KEPT_EVERY = 1 / 8;
const REMEMBERED = 24;

interface Touch {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/**
 * Tracks since when, at the latest, the leader counts the session's timeout. A follower answers
 * pings and reads alone. For a while it does so even when it has lost the leader, which may already
 * end the session. A leader that was replaced and has not noticed does the same. So only majority
 * answers prove anything, and what a server heard counts once it had the time to tell the leader.
 */
export class Proof {
  readonly #timeoutMs: number;
  #touches: Touch[] = [];
  #confirmedAt = -Infinity;
  #toldAt = -Infinity;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get keepEveryMs(): number {
    return this.#timeoutMs * KEPT_EVERY;
  }

  /** How long after `since` a holder may rely on the session. */
  get leaseMs(): number {
    return Math.floor(this.#timeoutMs * (1 - TOLD_WITHIN - KEPT_EVERY));
  }

  /** No later than the send of the last answered request, and no later than what is proven. */
  get since(): number {
    return Math.min(this.#confirmedAt, this.#toldAt + this.#timeoutMs - this.leaseMs);
  }

  /**
   * A majority agrees on a new session. A resumed session is the word of one leader alone: the
   * leader was told at once, and this counts with the next majority answer. The previous server may
   * have told nobody what it heard.
   */
  opened(sentAt: number, isNew: boolean): void {
    this.#touches = [{ sentAt, answeredAt: -Infinity }];
    if (isNew) this.answered(sentAt, sentAt, true);
  }

  answered(sentAt: number, answeredAt: number, byMajority: boolean): void {
    if (byMajority) {
      const toldBy = sentAt - this.#timeoutMs * TOLD_WITHIN;
      for (const touch of this.#touches) {
        if (touch.answeredAt <= toldBy) this.#toldAt = Math.max(this.#toldAt, touch.sentAt);
      }
      this.#confirmedAt = Math.max(this.#confirmedAt, sentAt);
    }
    const last = this.#touches.at(-1);
    const apartMs = this.#timeoutMs / REMEMBERED / 2;
    if (last !== undefined && sentAt < last.sentAt + apartMs) return;
    this.#touches.push({ sentAt, answeredAt });
    if (this.#touches.length > REMEMBERED) this.#touches.shift();
  }
}

/** The session timeout to ask for, so that a holder may rely on this much of it. */
export function timeoutFor(leaseMs: number): number {
  return Math.ceil(leaseMs / (1 - TOLD_WITHIN - KEPT_EVERY));
}
