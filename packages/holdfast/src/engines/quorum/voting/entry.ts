import type { NodeAnswer } from "../nodes/node.js";
import type { AcquireOutcome, QuorumClaim } from "./quorum.js";

/** What this client knows about one claim that it made. */
export class Entry {
  readonly claim: QuorumClaim;
  /** Counts the calls for this claim: only the newest call judges, bids and gives up. */
  turn = 0;
  /** Calls that are not answered yet. */
  calls = 0;
  /** The outcome of the newest call; null while it is under way. */
  outcome: AcquireOutcome | null = null;
  /** Older calls that wait for this outcome. */
  readonly followers = new Set<(outcome: AcquireOutcome) => void>();
  attempt: number;
  fence = 0;
  tokens = 0;
  granted = false;
  /** Until when the grant may live on the nodes, by our clock. */
  livesUntil = 0;
  /** When the claim was first refused, in the nodes' time in µs; 0 if it was not. */
  ticket = 0;
  /** The claim was released: no attempt may follow, and tombstones stop attempts under way. */
  isOver = false;
  /** The order of the latest renewal: effects of an earlier one come too late. */
  lastOrder = 0;
  /** Attempts up to this one were given up: a node that accepts one later must take it back. */
  givenUp = 0;
  /** The order of the call that gave up: what a later call asks for, from any client, stays. */
  givenUpBy = 0;
  /** By node, the number of unanswered acquires: they may arrive after the release. */
  readonly unanswered: number[];
  /** By node, the counter because of which it refused the joining grant; 0 for none. */
  readonly counters: number[];
  /** By node, the last attempt that it accepted and was not asked to release; 0 for none. */
  readonly #standing: number[];

  constructor(claim: QuorumClaim, size: number, attempt: number) {
    this.claim = claim;
    this.attempt = attempt;
    this.unanswered = new Array(size).fill(0);
    this.counters = new Array(size).fill(0);
    this.#standing = new Array(size).fill(0);
  }

  answered(attempt: number, node: number, answer: NodeAnswer): void {
    if (answer.kind !== "failed" || answer.effect === "none") this.unanswered[node]!--;
    if (answer.kind !== "accepted" && answer.kind !== "known") return;
    const stands = answer.kind === "known" ? answer.attempt : attempt;
    this.#standing[node] = Math.max(this.#standing[node]!, stands);
  }

  /** The grant was made or renewed for this ttl, no later than now. */
  lives(ttlMs: number, now: number): void {
    this.livesUntil = Math.max(this.livesUntil, now + ttlMs + this.claim.delayMs);
  }

  isGivenUp(attempt: number): boolean {
    return attempt <= this.givenUp && !this.isOver;
  }

  /** Nodes that still have a record of a given-up attempt, a set of bits. */
  get leftovers(): number {
    let bits = 0;
    for (const [node, attempt] of this.#standing.entries()) {
      if (attempt > 0 && attempt <= this.givenUp) bits |= 1 << node;
    }
    return bits;
  }

  /** These nodes are asked to release given-up attempts. A newer attempt stays recorded. */
  takenBack(nodes: number): void {
    for (const [node, attempt] of this.#standing.entries()) {
      if ((nodes & (1 << node)) !== 0 && attempt <= this.givenUp) this.#standing[node] = 0;
    }
  }
}

/**
 * The most claims that are not held, of which the caller never tells that they are over. Live grants
 * are all kept, and more than this many entries of grants only while so many live.
 */
const MOST_ENTRIES = 10_000;
const MOST_LOOKS = 100;
/** One to make up for the entry that came, and one to catch up. */
const LOOKS_AT_HELD = 2;

/** The claims that this client made and has not released, as far as it remembers them. */
export class Entries {
  readonly #size: number;
  readonly #loose = new Map<string, Entry>();
  readonly #held = new Map<string, Entry>();
  /** Tickets of waiting claims. */
  readonly #tickets = new Set<number>();
  /** The highest attempt of any forgotten claim: if the claim returns, its attempts start above. */
  #attemptsForgotten = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get(id: string): Entry | undefined {
    return this.#held.get(id) ?? this.#loose.get(id);
  }

  for(claim: QuorumClaim): Entry {
    const known = this.get(claim.id);
    if (known !== undefined) return known;
    const entry = new Entry(claim, this.#size, this.#attemptsForgotten);
    this.#loose.set(claim.id, entry);
    if (this.#loose.size > MOST_ENTRIES) this.#forgetOne();
    return entry;
  }

  /** A call was answered: the claim may be held from now on, or not any more. */
  answered(entry: Entry, now: number): void {
    const { claim, granted } = entry;
    const [from, to] = granted ? [this.#loose, this.#held] : [this.#held, this.#loose];
    if (from.get(claim.id) !== entry) return;
    from.delete(claim.id);
    to.set(claim.id, entry);
    if (granted && this.#held.size > MOST_ENTRIES) this.#forgetEnded(now);
  }

  delete(id: string): void {
    this.#tickets.delete(this.get(id)?.ticket ?? 0);
    this.#loose.delete(id);
    this.#held.delete(id);
  }

  clear(): void {
    this.#loose.clear();
    this.#held.clear();
    this.#tickets.clear();
  }

  /** The claim waits from now on. A claim that already has a ticket keeps it. */
  giveTicket(entry: Entry, us: number): void {
    if (entry.ticket > 0) return;
    entry.ticket = Math.max(1, us);
    while (this.#tickets.has(entry.ticket)) entry.ticket++;
    this.#tickets.add(entry.ticket);
  }

  takeTicket(entry: Entry): void {
    this.#tickets.delete(entry.ticket);
    entry.ticket = 0;
  }

  awaits(ticket: number): boolean {
    return this.#tickets.has(ticket);
  }

  /**
   * Forgets a claim that is not held, if it finds one: the caller never tells that such a claim is
   * over. A claim with a call under way stays, because a repeat must find it.
   */
  #forgetOne(): void {
    let looks = 0;
    for (const entry of this.#loose.values()) {
      const isForgotten = entry.calls === 0;
      if (isForgotten) this.#forget(entry);
      if (isForgotten || ++looks === MOST_LOOKS) return;
    }
  }

  /** A lease that was lost may never be released. Each grant is looked at in its turn. */
  #forgetEnded(now: number): void {
    for (let looks = 0; looks < LOOKS_AT_HELD; looks++) {
      const [entry] = this.#held.values();
      if (entry === undefined) return;
      this.#held.delete(entry.claim.id);
      if (entry.calls > 0 || entry.livesUntil > now) this.#held.set(entry.claim.id, entry);
      else this.#forget(entry);
    }
  }

  #forget(entry: Entry): void {
    this.delete(entry.claim.id);
    this.#attemptsForgotten = Math.max(this.#attemptsForgotten, entry.attempt);
  }
}
