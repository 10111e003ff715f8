import { systemClock } from "../../../core/runtime/clock.js";

/**
 * Longer than a request can be under way, and longer than core waits before it repeats or gives up.
 */
const REMEMBERED_MS = 600_000;

/** The calls of one claim that are under way: core may repeat a call before the first has ended. */
interface Claiming {
  calls: number;
  over: boolean;
  sent: boolean;
}

/**
 * Claims that were released before they were sent. They are not sent any more, and need no release
 * at the server; if the same claim comes again, it is over. A claim that was sent and not answered
 * may exist at the server, however often it is repeated, so its release goes to the server.
 */
export class CancelledClaims {
  readonly #underWay = new Map<string, Claiming>();
  /** Until when each released claim is remembered, oldest first. */
  readonly #over = new Map<string, number>();
  readonly #doubtful = new Map<string, number>();

  /** Runs a claim. `ask` calls isOver() just before it sends anything. */
  async claim<T>(grantId: string, ask: (isOver: () => boolean) => Promise<T>): Promise<T> {
    const fresh = { calls: 0, over: this.#over.has(grantId), sent: this.#doubtful.has(grantId) };
    const claiming = this.#underWay.get(grantId) ?? fresh;
    this.#underWay.set(grantId, claiming);
    claiming.calls++;
    try {
      const answer = await ask(() => {
        claiming.sent ||= !claiming.over;
        return claiming.over;
      });
      this.#doubtful.delete(grantId);
      return answer;
    } catch (error) {
      if (claiming.sent) remember(this.#doubtful, grantId, REMEMBERED_MS);
      throw error;
    } finally {
      if (--claiming.calls === 0) this.#underWay.delete(grantId);
    }
  }

  /** True if nothing else must be released, because the claim was never sent. */
  release(grantId: string, tombstoneMs: number): boolean {
    const claiming = this.#underWay.get(grantId);
    this.#doubtful.delete(grantId);
    if (claiming === undefined) return false;
    claiming.over = true;
    if (claiming.sent) return false;
    remember(this.#over, grantId, tombstoneMs);
    return true;
  }
}

function remember(memory: Map<string, number>, grantId: string, forMs: number): void {
  const now = systemClock.now();
  for (const [old, until] of memory) {
    if (until > now) break;
    memory.delete(old);
  }
  memory.delete(grantId);
  memory.set(grantId, now + forMs);
}
