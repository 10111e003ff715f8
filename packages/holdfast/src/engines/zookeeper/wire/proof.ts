// Followers tell the leader twice a tick which sessions they heard of. A session lives at least two
// ticks on a server that is set up as usual, and four here, so this part of it is long enough.
const TOLD_WITHIN = 1 / 8;
// How often the session is kept alive, as a part of its timeout.
const KEPT_EVERY = 1 / 8;
const REMEMBERED = 24;

interface Touch {
  readonly sentAt: number;
  readonly answeredAt: number;
}

/**
 * Since when the leader must be counting the session's timeout, at the latest. A follower answers
 * pings and reads by itself, for a while even when it has lost the leader, who meanwhile ends the
 * session; and so does a leader that has not noticed yet that it was succeeded. So only answers that a
 * majority agreed on prove anything; and what a server heard counts once it had the time to tell.
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

  /** How much of the timeout a holder may count on, from `since` on. */
  get leaseMs(): number {
    return Math.floor(this.#timeoutMs * (1 - TOLD_WITHIN - KEPT_EVERY));
  }

  /** No later than the send of the last answered request, and never by more than is proven. */
  get since(): number {
    return Math.min(this.#confirmedAt, this.#toldAt + this.#timeoutMs - this.leaseMs);
  }

  /**
   * A majority agrees on a new session. One that is taken up again is a leader's word alone: it was told at
   * once, and counts with the next answer of a majority. What the server before heard, it may have told
   * nobody.
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

/** The timeout to ask for, so that a holder may count on this much of it. */
export function timeoutFor(leaseMs: number): number {
  return Math.ceil(leaseMs / (1 - TOLD_WITHIN - KEPT_EVERY));
}
