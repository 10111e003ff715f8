import type { Gone } from "../../../engine.js";
import type { NodeAnswer, NodeHolder } from "../nodes/node.js";

/** A record this old belongs to a holder or was left behind: it is not a bid that ends by itself soon. */
const YOUNG_MS = 100;

/** Answers of nodes that do not vote in this quorum, or not now. */
export const NOT_COUNTED: ReadonlySet<NodeAnswer["kind"]> = new Set([
  ...(["failed", "uncertified", "terms"] as const),
]);

/** What a node that does not count answered, or why it has no answer that counts. */
export type Absent = NodeAnswer | "late" | "suspect" | "skewed";

interface Candidate {
  readonly holder: NodeHolder;
  readonly nodes: number;
  readonly ageMs: number;
}

/** The nodes' answers to one attempt. */
export class Tally {
  readonly #size: number;
  readonly #writeQuorum: number;
  readonly #fence: number;
  readonly #youngMs: number;
  readonly #answers: (Absent | null)[];
  /** By fence, how many nodes hold this id under it. Null until one does: few claims are repeats. */
  #known: Map<number, number> | null = null;
  accepted = 0;
  answered = 0;
  /** Nodes that have not answered, a set of bits. */
  missing: number;
  /** Nodes that would accept a greater fence. */
  outbid = 0;
  /** The greatest fence that any node has heard of. */
  counter = 0;
  busy = 0;
  /** Nodes that hold this id under another fence. */
  elsewhere = 0;
  lastAttempt = 0;
  gone: Gone["why"] | null = null;
  /** Set when so many nodes have other terms that enough nodes cannot accept. */
  terms: { readonly node: number; readonly terms: string } | null = null;
  #foreign = 0;

  constructor(size: number, writeQuorum: number, fence: number, rttMs: number) {
    this.#youngMs = YOUNG_MS + 4 * rttMs;
    this.#size = size;
    this.#writeQuorum = writeQuorum;
    this.#fence = fence;
    this.#answers = new Array(size).fill(null);
    this.missing = (1 << size) - 1;
  }

  /** True when no further answer can change the outcome. A valid fence is never above the limit. */
  add(node: number, answer: Absent, limit: number): boolean {
    this.#answers[node] = answer;
    this.answered++;
    this.missing &= ~(1 << node);
    if (typeof answer !== "string") this.#count(node, answer);
    // Nodes that do not count decide nothing: wait for the others, so that an error names every reason.
    const refused = this.busy + this.outbid - this.#outbidAbove(limit);
    return (
      this.accepted >= this.#writeQuorum ||
      this.gone !== null ||
      this.terms !== null ||
      this.knownFence !== null ||
      (refused > this.#size - this.#writeQuorum && this.#known === null)
    );
  }

  /**
   * A node whose clock is far ahead asks for a fence that the other nodes cannot accept. A bid that high
   * would be refused by all of them until their clocks reach it, so that node is left out instead.
   */
  leaveOutAbove(limit: number): void {
    for (const [node, answer] of this.#answers.entries()) {
      if (!isAnswer(answer) || (answer.kind !== "counter" && answer.kind !== "busy")) continue;
      if (answer.counter <= limit) this.counter = Math.max(this.counter, answer.counter);
      else if (answer.kind === "counter") {
        this.outbid--;
        this.#answers[node] = "skewed";
      }
    }
  }

  /** A fence under which enough nodes already hold this id. */
  get knownFence(): number | null {
    if (this.#known === null) return null;
    for (const [fence, count] of this.#known) if (count >= this.#writeQuorum) return fence;
    return null;
  }

  get isKnown(): boolean {
    return this.#known !== null;
  }

  tokensOf(fence: number): number {
    for (const answer of this.#answers) {
      if (isAnswer(answer) && answer.kind === "known" && answer.fence === fence)
        return answer.tokens;
    }
    return 1;
  }

  /** The least life left on enough of the nodes that hold this id under this fence. */
  leftMs(fence: number): number {
    const lefts = this.#answers.flatMap((answer) => {
      if (!isAnswer(answer)) return [];
      if (answer.kind === "accepted") return fence === this.#fence ? [Infinity] : [];
      return answer.kind === "known" && answer.fence === fence ? [answer.leftMs] : [];
    });
    return lefts.sort((a, b) => b - a)[this.#writeQuorum - 1] ?? 0;
  }

  /** Nodes that failed with an unknown effect, a set of bits. */
  get doubtful(): number {
    let bits = 0;
    for (const [node, answer] of this.#answers.entries()) {
      if (isAnswer(answer) && answer.kind === "failed" && answer.effect === "unknown") {
        bits |= 1 << node;
      }
    }
    return bits;
  }

  /** The number of nodes whose answer counts. A node whose clock is far off is not among them. */
  get present(): number {
    return this.accepted + this.outbid + this.busy + this.elsewhere;
  }

  absent(): { readonly node: number; readonly answer: Absent }[] {
    return this.#answers.flatMap((answer, node) => {
      const seen = answer ?? "late";
      const counts = isAnswer(seen) && !NOT_COUNTED.has(seen.kind);
      return counts ? [] : [{ node, answer: seen }];
    });
  }

  get inDoubt(): boolean {
    return this.answered < this.#size || this.doubtful !== 0;
  }

  /**
   * The holders, for people to read; holders within their lock-delay are not shown. A record on too few
   * of the nodes that answered may belong to a contender, unless it has been there for a while.
   */
  holders(): NodeHolder[] {
    const candidates = new Map<number, Candidate>();
    for (const holder of this.#holders()) {
      const { fence, ageMs } = holder;
      const known = candidates.get(fence) ?? { holder, nodes: 0, ageMs: 0 };
      const { nodes } = known;
      candidates.set(fence, { ...known, nodes: nodes + 1, ageMs: Math.max(known.ageMs, ageMs) });
    }
    // The record may also be on nodes that did not answer.
    const least = this.#writeQuorum - (this.#size - this.present);
    const [first, ...others] = [...candidates.values()]
      .filter(({ holder, nodes, ageMs }) => {
        const isOld = nodes >= least && ageMs >= this.#youngMs;
        return holder.leftMs > 0 && (nodes >= this.#writeQuorum || isOld);
      })
      .sort((a, b) => b.nodes - a.nodes || b.ageMs - a.ageMs)
      .map(({ holder }) => holder);
    if (first === undefined) return [];
    // An exclusive holder is alone, so the other records are not holders.
    return first.mode === "x" ? [first] : [first, ...others.filter(({ mode }) => mode === "s")];
  }

  /** Nobody holds it: contenders took some nodes each a moment ago, and all will release them. */
  get isSplit(): boolean {
    const nodes = new Map<number, number>();
    for (const { fence, ageMs, leftMs } of this.#holders()) {
      if (ageMs >= this.#youngMs || leftMs <= 0) return false;
      nodes.set(fence, (nodes.get(fence) ?? 0) + 1);
    }
    if (this.busy > 0 && nodes.size === 0) return false;
    return Math.max(0, ...nodes.values()) < this.#writeQuorum;
  }

  /** The time until enough nodes are free if nobody renews or releases. */
  freeAfterMs(): number {
    const waits = this.#answers.map((answer) => {
      if (!isAnswer(answer) || NOT_COUNTED.has(answer.kind)) return Infinity;
      if (answer.kind !== "busy") return 0;
      return Math.max(0, ...answer.holders.map(({ leftMs, delayMs }) => leftMs + delayMs));
    });
    waits.sort((a, b) => a - b);
    return waits[this.#writeQuorum - 1] ?? Infinity;
  }

  #count(node: number, answer: NodeAnswer): void {
    if (answer.kind === "accepted") this.accepted++;
    else if (answer.kind === "known") this.#countKnown(answer.fence, answer.attempt);
    else if (answer.kind === "counter") this.outbid++;
    else if (answer.kind === "busy") this.busy++;
    else if (answer.kind === "skew") this.#answers[node] = "skewed";
    else if (answer.kind === "gone") this.gone = answer.why;
    else if (answer.kind === "terms" && ++this.#foreign > this.#size - this.#writeQuorum) {
      this.terms = { node, terms: answer.terms };
    }
  }

  #outbidAbove(limit: number): number {
    if (this.outbid === 0) return 0;
    return this.#answers.filter(
      (answer) => isAnswer(answer) && answer.kind === "counter" && answer.counter > limit,
    ).length;
  }

  #countKnown(fence: number, attempt: number): void {
    this.lastAttempt = Math.max(this.lastAttempt, attempt);
    if (fence === this.#fence) this.accepted++;
    else this.elsewhere++;
    this.#known ??= new Map();
    this.#known.set(fence, (this.#known.get(fence) ?? 0) + 1);
  }

  #holders(): NodeHolder[] {
    return this.#answers.flatMap((answer) =>
      isAnswer(answer) && answer.kind === "busy" ? answer.holders : [],
    );
  }
}

function isAnswer(answer: Absent | null): answer is NodeAnswer {
  return answer !== null && typeof answer === "object";
}
