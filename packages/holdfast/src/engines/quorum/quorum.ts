import type { Gone } from "../../engine.js";
import { Acquisition } from "./acquisition.js";
import type { Electorate, QuorumClock } from "./canvass.js";
import { ClockWatch, type Suspicion } from "./clock-watch.js";
import { type Closed, Closing, type ReleaseWish } from "./closing.js";
import type { Letter, NodeAnswer, NodeHolder, NodeRequest, QuorumNode } from "./node.js";
import { Quarantine } from "./quarantine.js";
import { type RenewOutcome, renewGrant } from "./renewal.js";
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

export type AcquireOutcome =
  | { readonly kind: "granted"; readonly fence: number; readonly tokens: number }
  | {
      readonly kind: "busy";
      readonly holders: readonly NodeHolder[];
      readonly retryAfterMs: number;
    }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | Unanswered
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

/** What this client knows of one grant that it asked for. */
export interface Entry {
  readonly claim: QuorumClaim;
  attempt: number;
  fence: number;
  tokens: number;
  granted: boolean;
  /** It was refused before, and came back. */
  waited: boolean;
  /** It was released: no attempt may follow, and tombstones await those that are on their way. */
  isOver: boolean;
  /** Attempts up to this one were given up: what is accepted of them later is taken back. */
  givenUp: number;
  /** Nodes that accepted an attempt and were not asked to give it back. A set of bits. */
  standing: number;
  /** By node, acquires without an answer: they may arrive there after the release. */
  readonly unanswered: number[];
}

const MOST_ENTRIES = 10_000;
const MOST_LOOKS = 100;

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
  readonly #entries = new Map<string, Entry>();

  constructor(nodes: readonly QuorumNode[], terms: QuorumTerms, surroundings: Surroundings) {
    this.#nodes = nodes;
    this.terms = terms;
    this.surroundings = surroundings;
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

  acquire(claim: QuorumClaim, done: (outcome: AcquireOutcome) => void): void {
    new Acquisition(this, this.#entryFor(claim), done).start();
  }

  renew(
    ref: { readonly resource: string; readonly id: string; readonly ttlMs: number },
    done: (outcome: RenewOutcome) => void,
  ): void {
    renewGrant(this, this.#entries.get(ref.id), ref, done);
  }

  release(ref: ReleaseWish, done: (outcome: Closed) => void): void {
    const entry = this.#entries.get(ref.id);
    if (entry !== undefined) entry.isOver = true;
    this.#entries.delete(ref.id);
    new Closing(this, ref, entry, Number.MAX_SAFE_INTEGER, true).settle(done);
  }

  /** Ends what was given up on these nodes, a set of bits: it was accepted after that. */
  takeBack(entry: Entry, nodes: number, then = () => {}): void {
    const { resource, id } = entry.claim;
    entry.standing &= ~nodes;
    const ref = { resource, id, tombstoneMs: 0, patienceMs: this.terms.nodeTimeoutMs };
    new Closing(this, ref, entry, entry.givenUp, false).takeBack(nodes, then);
  }

  close(): void {
    this.quarantine.close();
    this.#entries.clear();
  }

  #entryFor(claim: QuorumClaim): Entry {
    const known = this.#entries.get(claim.id);
    if (known !== undefined) return known;
    const entry: Entry = {
      claim,
      attempt: 0,
      fence: 0,
      tokens: 0,
      granted: false,
      waited: false,
      isOver: false,
      givenUp: 0,
      standing: 0,
      unanswered: new Array(this.size).fill(0),
    };
    this.#entries.set(claim.id, entry);
    if (this.#entries.size > MOST_ENTRIES) this.#forgetOne();
    return entry;
  }

  /** Claims that were given up leave no word; those that are held are worth more. */
  #forgetOne(): void {
    let looks = 0;
    for (const [id, { granted }] of this.#entries) {
      if (granted && ++looks < MOST_LOOKS) continue;
      this.#entries.delete(id);
      return;
    }
  }
}

/** What only a certified node answers, be it by the word of clients that agree on something else. */
const PROOFS: ReadonlySet<NodeAnswer["kind"]> = new Set([
  ...(["accepted", "known", "busy", "counter", "skew", "renewed"] as const),
  ...(["certified", "view", "checked", "terms"] as const),
]);
