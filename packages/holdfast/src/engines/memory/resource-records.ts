import type { Claim, HolderView, ResourceView } from "../../engine.js";
import { limitMismatch } from "../../errors.js";
import { Line } from "./queue.js";

// Who is refused or waits is told of so many holders at most: thousands of readers would be listed
// anew with every heartbeat.
const HOLDERS_TOLD = 16;
const FEW = 16;

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
export class Room {
  readonly holdings = new Map<string, Holding>();
  /** First come, first served; a waiter is eligible only if everyone before it is. */
  readonly line = new Line();
  /** Rising tokens, for finding one by halves. Those that have ended stay in it for a while. */
  #byToken: Holding[] = [];
  // Of the latest holding. All that are here are of one mode, and share one limit.
  #latest: Claim | null = null;
  // No holding ends before this instant, so until then nobody has to look at each of them. It may be
  // too early, because a renewal does not move it.
  #firstEnd = Infinity;

  get isEmpty(): boolean {
    return this.holdings.size === 0 && this.line.length === 0;
  }

  add(holding: Holding): void {
    this.#latest = holding.claim;
    this.holdings.set(holding.claim.grantId, holding);
    this.#byToken.push(holding);
    if (this.#byToken.length > 2 * this.holdings.size + FEW) this.#forgetEnded();
    this.expect(holding);
  }

  /** The holding may end earlier than the others. */
  expect({ expiresAt, claim }: Holding): void {
    this.#firstEnd = Math.min(this.#firstEnd, expiresAt + claim.lockDelayMs);
  }

  /** Removes what is over. */
  tidy(now: number): void {
    if (now < this.#firstEnd) return;
    this.#firstEnd = Infinity;
    for (const [grantId, holding] of this.holdings) {
      if (holding.expiresAt + holding.claim.lockDelayMs <= now) this.holdings.delete(grantId);
      else this.expect(holding);
    }
  }

  /** How long nothing ends by itself, at least. */
  quietMs(now: number): number {
    return this.holdings.size === 0 ? Infinity : this.#firstEnd - now;
  }

  fits(claim: Claim): boolean {
    const kind = this.#kind;
    if (kind === null) return true;
    if (claim.mode === "exclusive" || kind.mode === "exclusive") return false;
    return claim.limit === null || this.holdings.size < claim.limit;
  }

  /** All shared claims of a resource have one limit, so one of those who hold or wait tells it. */
  refuseOtherLimit(claim: Claim): void {
    if (claim.mode !== "shared") return;
    const kind = this.#kind;
    const limit = kind?.mode === "shared" ? kind.limit : this.line.limit;
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
    if (found === undefined || !this.#isHere(found) || found.expiresAt <= now) return null;
    return token < found.token + BigInt(found.claim.tokens) ? found : null;
  }

  /** Who is in the way; not all of them, where they are many. */
  holders(now: number): HolderView[] {
    const views: HolderView[] = [];
    for (const holding of this.holdings.values()) {
      if (holding.expiresAt > now) views.push(holderView(holding, now));
      if (views.length === HOLDERS_TOLD) break;
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
    const waiters = [...this.line].map(({ claim: { mode, label } }, position) => ({
      mode,
      label,
      position,
    }));
    return { resource, holders, waiters, closedMs };
  }

  /** A claim of the kind that all holders have; null where nobody holds. */
  get #kind(): Claim | null {
    return this.holdings.size === 0 ? null : this.#latest;
  }

  #isHere(holding: Holding): boolean {
    return this.holdings.get(holding.claim.grantId) === holding;
  }

  #forgetEnded(): void {
    this.#byToken = this.#byToken.filter((holding) => this.#isHere(holding));
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
