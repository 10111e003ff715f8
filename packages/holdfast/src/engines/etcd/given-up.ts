import { systemClock } from "../../clock.js";

interface Claiming {
  over: boolean;
  sent: boolean;
}

/**
 * Claims that were released before they were sent. They need not be sent any more, nor released at the
 * server; should the same claim come once more, it is over.
 */
export class GivenUp {
  readonly #underWay = new Map<string, Claiming>();
  /** Until when each is remembered, in the order of their coming. */
  readonly #over = new Map<string, number>();

  /** Runs a claim. What it is handed says, just before anything is sent, whether it is over. */
  async claim<T>(grantId: string, ask: (isOver: () => boolean) => Promise<T>): Promise<T> {
    const claiming = { over: this.#over.has(grantId), sent: false };
    this.#underWay.set(grantId, claiming);
    try {
      return await ask(() => {
        claiming.sent ||= !claiming.over;
        return claiming.over;
      });
    } finally {
      if (this.#underWay.get(grantId) === claiming) this.#underWay.delete(grantId);
    }
  }

  /** Whether that is all there is to release: nothing of the claim has left this process. */
  release(grantId: string, tombstoneMs: number): boolean {
    const claiming = this.#underWay.get(grantId);
    if (claiming === undefined) return false;
    claiming.over = true;
    if (claiming.sent) return false;
    const now = systemClock.now();
    for (const [old, until] of this.#over) {
      if (until > now) break;
      this.#over.delete(old);
    }
    this.#over.set(grantId, now + tombstoneMs);
    return true;
  }
}
