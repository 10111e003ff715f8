import type { Claim, HolderView, ResourceView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import { Queue } from "./queue.js";

// Who is refused or waits is told of so many holders at most: thousands of readers would be listed
// anew with every heartbeat.
const MAX_HOLDERS_REPORTED = 16;
const SPARE_ENTRIES = 16;

/** A grant as the store keeps it. It blocks others until its lock-delay is over, too. */
export interface Holding {
  readonly claim: Claim;
  readonly token: bigint;
  /** From when the life counts, and for how long; renewals move both. */
  since: number;
  ttlMs: number;
  expiresAt: number;
  /** Of the latest renewal: one with a smaller number comes too late. */
  order: number;
  /** Which of its tokens is in use. */
  index: number;
  /** Its holder has gone and left it to time. */
  left: boolean;
  revoked: boolean;
}

/** One resource: one exclusive holding or any number of shared ones, and those who wait. */
export class ResourceRecords {
  readonly holdings = new Map<string, Holding>();
  /** First come, first served; a waiter is eligible only if everyone before it is. */
  readonly queue = new Queue();
  /** Rising tokens, for finding one by halves. Those that have ended stay in it for a while. */
  #byToken: Holding[] = [];
  // Of the latest holding. All that are here are of one mode, and share one limit.
  #latestClaim: Claim | null = null;
  // No holding ends before this instant, so until then nobody has to look at each of them. It may be
  // too early, because a renewal does not move it.
  #earliestEnd = Infinity;

  get isEmpty(): boolean {
    return this.holdings.size === 0 && this.queue.length === 0;
  }

  add(holding: Holding): void {
    this.#latestClaim = holding.claim;
    this.holdings.set(holding.claim.grantId, holding);
    this.#byToken.push(holding);
    if (this.#byToken.length > 2 * this.holdings.size + SPARE_ENTRIES)
      this.#removeEndedFromByToken();
    this.noteEnd(holding);
  }

  /** The holding may end earlier than the others. */
  noteEnd({ expiresAt, claim }: Holding): void {
    this.#earliestEnd = Math.min(this.#earliestEnd, expiresAt + claim.lockDelayMs);
  }

  /** Removes what is over. */
  removeEnded(now: number): void {
    if (now < this.#earliestEnd) return;
    this.#earliestEnd = Infinity;
    for (const [grantId, holding] of this.holdings) {
      if (holding.expiresAt + holding.claim.lockDelayMs <= now) this.holdings.delete(grantId);
      else this.noteEnd(holding);
    }
  }

  /** How long nothing ends by itself, at least. */
  nextEndMs(now: number): number {
    return this.holdings.size === 0 ? Infinity : this.#earliestEnd - now;
  }

  fits(claim: Claim): boolean {
    const sample = this.#sampleClaim;
    if (sample === null) return true;
    if (claim.mode === "exclusive" || sample.mode === "exclusive") return false;
    return claim.limit === null || this.holdings.size < claim.limit;
  }

  /** All shared claims of a resource have one limit, so one of those who hold or wait tells it. */
  refuseOtherLimit(claim: Claim): void {
    if (claim.mode !== "shared") return;
    const sample = this.#sampleClaim;
    const limit = sample?.mode === "shared" ? sample.limit : this.queue.limit;
    if (limit === undefined || limit === claim.limit) return;
    throw limitMismatch(claim.resource, claim.limit, limit);
  }

  /** The living grant to which the token belongs. */
  find(token: bigint, now: number): Holding | null {
    let [low, high] = [0, this.#byToken.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#byToken[middle]!.token <= token) low = middle + 1;
      else high = middle;
    }
    const found = this.#byToken[low - 1];
    if (found === undefined || !this.#isCurrent(found) || found.expiresAt <= now) return null;
    return token < found.token + BigInt(found.claim.tokens) ? found : null;
  }

  /** Who is in the way; not all of them, where they are many. */
  holders(now: number): HolderView[] {
    const views: HolderView[] = [];
    for (const holding of this.holdings.values()) {
      if (holding.expiresAt > now) views.push(holderView(holding, now));
      if (views.length === MAX_HOLDERS_REPORTED) break;
    }
    return views;
  }

  view(resource: string, now: number): ResourceView {
    const holders: HolderView[] = [];
    let closedMs = 0;
    for (const holding of this.holdings.values()) {
      const { expiresAt, claim } = holding;
      if (expiresAt > now) holders.push(holderView(holding, now));
      else closedMs = Math.max(closedMs, expiresAt + claim.lockDelayMs - now);
    }
    const waiters = [...this.queue].map(({ claim: { mode, label } }, position) => ({
      mode,
      label,
      position,
    }));
    return { resource, holders, waiters, closedMs };
  }

  /** A claim of the sample that all holders have; null where nobody holds. */
  get #sampleClaim(): Claim | null {
    return this.holdings.size === 0 ? null : this.#latestClaim;
  }

  #isCurrent(holding: Holding): boolean {
    return this.holdings.get(holding.claim.grantId) === holding;
  }

  #removeEndedFromByToken(): void {
    this.#byToken = this.#byToken.filter((holding) => this.#isCurrent(holding));
  }
}

export function tokenInUse({ token, index }: Holding): bigint {
  return token + BigInt(index);
}

function holderView(holding: Holding, now: number): HolderView {
  const { claim, expiresAt, revoked } = holding;
  const { mode, label } = claim;
  return { mode, token: tokenInUse(holding), label, remainingMs: expiresAt - now, revoked };
}
