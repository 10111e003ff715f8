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

const MOST_ENTRIES = 10_000;
const MOST_LOOKS = 100;

/** The claims that this client made and has not released, as far as it remembers them. */
export class Entries {
  readonly #size: number;
  readonly #byId = new Map<string, Entry>();
  /** Tickets of waiting claims. */
  readonly #tickets = new Set<number>();
  /** The highest attempt of any forgotten claim: if the claim returns, its attempts start above. */
  #attemptsForgotten = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  for(claim: QuorumClaim): Entry {
    const known = this.#byId.get(claim.id);
    if (known !== undefined) return known;
    const entry = new Entry(claim, this.#size, this.#attemptsForgotten);
    this.#byId.set(claim.id, entry);
    if (this.#byId.size > MOST_ENTRIES) this.#forgetOne();
    return entry;
  }

  delete(id: string): void {
    this.#tickets.delete(this.#byId.get(id)?.ticket ?? 0);
    this.#byId.delete(id);
  }

  clear(): void {
    this.#byId.clear();
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
    let least: Entry | null = null;
    for (const entry of this.#byId.values()) {
      if (entry.calls === 0 && (least === null || !entry.granted)) least = entry;
      if (++looks === MOST_LOOKS || least?.granted === false) break;
    }
    if (least === null) return;
    this.delete(least.claim.id);
    this.#attemptsForgotten = Math.max(this.#attemptsForgotten, least.attempt);
  }
}
