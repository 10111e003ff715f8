export interface SimulatedLease {
  readonly client: number;
  readonly mode: "x" | "s";
  readonly fence: number;
  readonly tokens: number;
  /** In the world's time: until then its holder believes in it. */
  until: number;
  /** Its lock-delay: for so long after that nobody may be granted, unless it is released. */
  readonly closedMs: number;
  isReleased: boolean;
}

/** Sees all leases at once, as nobody in the world can. */
export class Checker {
  readonly #exclusion: boolean;
  readonly #leases: SimulatedLease[] = [];
  #highest = 0;
  #highestShared = 0;
  grants = 0;
  violation: string | null = null;

  constructor(exclusion: boolean) {
    this.#exclusion = exclusion;
  }

  granted(lease: SimulatedLease, now: number): void {
    this.grants++;
    this.#expectAlone(lease, now);
    const least = lease.mode === "x" ? Math.max(this.#highest, this.#highestShared) : this.#highest;
    if (lease.fence <= least) {
      this.fail(`token ${lease.fence} was granted to client ${lease.client} after ${least}`);
    }
    const last = lease.fence + lease.tokens - 1;
    if (lease.mode === "x") this.#highest = Math.max(this.#highest, last);
    else this.#highestShared = Math.max(this.#highestShared, last);
    this.#leases.push(lease);
  }

  fail(violation: string): void {
    this.violation ??= violation;
  }

  #expectAlone(lease: SimulatedLease, now: number): void {
    if (!this.#exclusion) return;
    for (const other of this.#leases) {
      if (other.isReleased || other.until + other.closedMs <= now) continue;
      if (lease.mode === "s" && other.mode === "s") continue;
      this.fail(
        `at ${now.toFixed(3)} ms client ${lease.client} was granted what client ${other.client} ` +
          `holds until ${other.until.toFixed(3)} ms, closed for ${other.closedMs.toFixed(3)} ms more`,
      );
    }
  }
}
