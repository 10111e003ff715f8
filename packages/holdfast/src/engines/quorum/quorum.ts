import type { Gone } from "../../engine.js";
import { Acquisition } from "./acquisition.js";
import type { Electorate, QuorumClock } from "./canvass.js";
import { ClockWatch, type Suspicion } from "./clock-watch.js";
import { ALL, type Closed, Closing, type ReleaseWish } from "./closing.js";
import { Entries, type Entry } from "./entry.js";
import type { Letter, NodeAnswer, NodeHolder, NodeRequest, QuorumNode } from "./node.js";
import { Quarantine } from "./quarantine.js";
import { type RenewOutcome, type RenewWish, renewGrant } from "./renewal.js";
import { Seen } from "./seen.js";

/** How nodes and clients agree; the same for all clients of a quorum, but for nodeTimeoutMs. */
export interface QuorumTerms {
  readonly writeQuorum: number;
  /** The longest ttl and lock-delay together; so long is a quarantine. */
  readonly maxTtlMs: number;
  readonly maxSkewMs: number;
  /** One node's part of one call, at most. */
  readonly nodeTimeoutMs: number;
  /** How much the rates of two clocks may differ. */
  readonly drift: number;
}

/** Everything that is not decided by nodes: time and chance. */
export interface Surroundings {
  readonly clock: QuorumClock;
  /** From 0 up to 1. */
  random(): number;
  mintNonce(): string;
  report(event: QuorumEvent): void;
}

export interface QuorumEvent {
  readonly node: number;
  readonly state: "quarantined" | "certified" | "suspect";
  readonly forMs: number;
  readonly movedMs?: number;
}

export interface QuorumClaim {
  readonly resource: string;
  readonly id: string;
  readonly mode: Letter;
  readonly ttlMs: number;
  readonly delayMs: number;
  readonly tokens: number;
  readonly label: string;
}

export interface QuorumCall {
  /** The caller is answered soon after this. */
  readonly patienceMs: number;
  /** Rises with every call of one caller. */
  readonly order: number;
}

export type AcquireOutcome =
  | {
      readonly kind: "granted";
      readonly fence: number;
      readonly tokens: number;
      /** What enough nodes have of its life at least, as they answered. */
      readonly ttlMs: number;
    }
  | {
      readonly kind: "busy";
      readonly holders: readonly NodeHolder[];
      readonly retryAfterMs: number;
    }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | Unanswered
  /** A newer call with the same id, or its release, took this one's place, and is not answered yet. */
  | { readonly kind: "overtaken" }
  | { readonly kind: "terms"; readonly node: number; readonly terms: string };

/** Too few nodes could be counted. */
export interface Unanswered {
  readonly kind: "unanswered";
  readonly effect: "none" | "unknown";
  /** What each node that does not count said instead. */
  readonly absent: readonly {
    readonly node: number;
    readonly answer: NodeAnswer | "late" | "suspect";
  }[];
}

/**
 * Locks on a majority of independent nodes, with a fencing token. Calls back instead of promising, and
 * has time and chance handed in: so the simulator runs this very code, thousands of schedules a second.
 */
export class Quorum implements Electorate {
  readonly terms: QuorumTerms;
  readonly surroundings: Surroundings;
  readonly watch: ClockWatch;
  readonly quarantine: Quarantine;
  readonly seen = new Seen();
  /** Nodes that let the last question run out of time, a set of bits. Any answer takes them out. */
  silent = 0;
  readonly #nodes: readonly QuorumNode[];
  readonly #entries: Entries;

  constructor(nodes: readonly QuorumNode[], terms: QuorumTerms, surroundings: Surroundings) {
    this.#nodes = nodes;
    this.terms = terms;
    this.surroundings = surroundings;
    this.#entries = new Entries(nodes.length);
    const { clock } = surroundings;
    // Clocks may run apart while it is waited: the longest grant is over by all of them.
    const longestMs = terms.maxTtlMs * (1 + 2 * terms.drift) + 2;
    const suspect = ({ node, movedMs }: Suspicion) =>
      surroundings.report({ node, state: "suspect", forMs: longestMs, movedMs });
    this.watch = new ClockWatch(nodes.length, clock, terms.drift, longestMs, suspect);
    this.quarantine = new Quarantine({
      clock,
      waitMs: longestMs,
      mintNonce: () => surroundings.mintNonce(),
      ask: (node, request, answered) => this.ask(node, request, answered),
      changed: (node, state) => surroundings.report({ node, state, forMs: longestMs }),
    });
  }

  get size(): number {
    return this.#nodes.length;
  }

  get clock(): QuorumClock {
    return this.surroundings.clock;
  }

  nameOf(node: number): string {
    return this.#nodes[node]!.name;
  }

  /** How long one node is waited for in a call about grants of this ttl: far below it. */
  patienceMs(ttlMs: number): number {
    return Math.min(this.terms.nodeTimeoutMs, Math.max(ttlMs / 3, 50));
  }

  /** Every question goes through here, so that every answer tells of the node's clock and its life. */
  ask(node: number, request: NodeRequest, answered: (answer: NodeAnswer) => void): void {
    const sentAt = this.clock.now();
    this.#nodes[node]!.ask(request, (answer, us) => {
      this.silent &= ~(1 << node);
      if (answer.kind !== "failed") this.watch.sample(node, sentAt, us);
      if (answer.kind === "uncertified") this.quarantine.observe(node, answer);
      else if (PROOFS.has(answer.kind)) this.quarantine.cleared(node);
      answered(answer);
    });
  }

  /** The same id may be asked for again before this has called back. */
  acquire(claim: QuorumClaim, call: QuorumCall, done: (outcome: AcquireOutcome) => void): void {
    const entry = this.#entries.for(claim);
    entry.calls++;
    entry.outcome = null;
    const turn = ++entry.turn;
    const answered = (outcome: AcquireOutcome) => {
      entry.calls--;
      done(outcome);
      if (turn !== entry.turn) return;
      entry.outcome = outcome;
      for (const follow of [...entry.followers]) follow(outcome);
    };
    new Acquisition(this, entry, turn, call, answered).start();
  }

  /** Whether no newer call about this claim has begun. */
  speaksFor(entry: Entry, turn: number): boolean {
    return turn === entry.turn;
  }

  renew(wish: RenewWish, done: (outcome: RenewOutcome) => void): void {
    renewGrant(this, this.#entries.get(wish.id), wish, (outcome) => {
      // Nothing can be asked about it any more, and nobody will release it.
      if (wish.leave && outcome.kind === "renewed") this.#entries.delete(wish.id);
      done(outcome);
    });
  }

  /** Of a grant that this client asked for; of others it knows nothing. */
  lockDelayOf(id: string): number {
    return this.#entries.get(id)?.claim.delayMs ?? 0;
  }

  release(ref: ReleaseWish, done: (outcome: Closed) => void): void {
    const entry = this.#entries.get(ref.id);
    if (entry !== undefined) {
      entry.isOver = true;
      entry.turn++;
    }
    this.#entries.delete(ref.id);
    new Closing(this, ref, entry, ALL).settle(done);
  }

  /** Ends what was given up on these nodes, a set of bits. */
  takeBack(entry: Entry, nodes: number, restMs: number, then: (isSure: boolean) => void): void {
    const { claim, givenUp: upTo, givenUpBy: order } = entry;
    entry.takenBack(nodes);
    const patienceMs = Math.min(this.terms.nodeTimeoutMs, restMs);
    const ref = { resource: claim.resource, id: claim.id, tombstoneMs: 0, patienceMs };
    new Closing(this, ref, entry, { upTo, order, tell: false }).takeBack(nodes, then);
  }

  close(): void {
    this.quarantine.close();
    this.#entries.clear();
  }
}

/** What only a certified node answers, be it by the word of clients that agree on something else. */
const PROOFS: ReadonlySet<NodeAnswer["kind"]> = new Set([
  ...(["accepted", "known", "busy", "counter", "skew", "renewed"] as const),
  ...(["certified", "view", "checked", "terms"] as const),
]);
