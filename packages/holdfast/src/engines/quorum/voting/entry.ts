import type { NodeAnswer } from "../nodes/node.js";
import type { AcquireOutcome, QuorumClaim } from "./quorum.js";

/** What this client knows of one grant that it asked for. */
export class Entry {
  readonly claim: QuorumClaim;
  /** Counts the calls about this claim: only the newest one judges, bids and gives up. */
  turn = 0;
  /** Calls that are not answered yet. */
  calls = 0;
  /** What the newest call came to; null while it is under way. */
  outcome: AcquireOutcome | null = null;
  /** Older calls that wait for that. */
  readonly followers = new Set<(outcome: AcquireOutcome) => void>();
  attempt: number;
  fence = 0;
  tokens = 0;
  granted = false;
  /** When it was refused first, in the nodes' time in µs; 0 where it was not. */
  ticket = 0;
  /** It was released: no attempt may follow, and tombstones await those that are on their way. */
  isOver = false;
  /** Of the latest renewal: what an earlier one leads to comes too late. */
  lastOrder = 0;
  /** Attempts up to this one were given up: what is accepted of them later is taken back. */
  givenUp = 0;
  /** The order of the call that did so: what a later call asks for, here or elsewhere, stays. */
  givenUpBy = 0;
  /** By node, acquires without an answer: they may arrive there after the release. */
  readonly unanswered: number[];
  /** By node, the counter for which it refused to join the grant; 0 for none. */
  readonly counters: number[];
  /** By node, the last attempt that it accepted and was not asked to give back; 0 for none. */
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

  /** Nodes on which an attempt stands that was given up, a set of bits. */
  get leftovers(): number {
    let bits = 0;
    for (const [node, attempt] of this.#standing.entries()) {
      if (attempt > 0 && attempt <= this.givenUp) bits |= 1 << node;
    }
    return bits;
  }

  /** These nodes are asked to give back what was given up. A newer attempt stands on there. */
  takenBack(nodes: number): void {
    for (const [node, attempt] of this.#standing.entries()) {
      if ((nodes & (1 << node)) !== 0 && attempt <= this.givenUp) this.#standing[node] = 0;
    }
  }
}

const MOST_ENTRIES = 10_000;
const MOST_LOOKS = 100;

/** All claims that this client asked for and has not released, as far as it remembers them. */
export class Entries {
  readonly #size: number;
  readonly #byId = new Map<string, Entry>();
  /** Tickets of those that wait. */
  readonly #tickets = new Set<number>();
  /** The most attempts of any claim that was forgotten: if it comes again, its numbers lie above. */
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

  /** It waits from now on; what it has already it keeps. */
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
   * Claims that were given up leave no word; those that are held are worth more. One that is being
   * asked for stays: a repeat has to find it.
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
