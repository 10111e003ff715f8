import type { Gone } from "../../../engine.js";
import { ClockWatch, type Suspicion } from "../nodes/clock-watch.js";
import type { ModeCode, NodeAnswer, NodeHolder, NodeRequest, QuorumNode } from "../nodes/node.js";
import { Quarantine } from "../nodes/quarantine.js";
import { Acquisition } from "./acquisition.js";
import { countBits } from "./bits.js";
import type { NodeSet, QuorumClock } from "./broadcast.js";
import { Entries, type Entry } from "./entry.js";
import { HighestFence } from "./highest-fence.js";
import { ALL, Release, type ReleaseOutcome, type ReleaseParams } from "./release.js";
import { type RenewOutcome, type RenewParams, renewGrant } from "./renewal.js";
import type { Absent } from "./tally.js";

/** A process that is called may be busy with something else. One that has died holds others up for so long. */
const LEAST_ARRIVAL_MS = 500;
const MOST_ARRIVAL_MS = 2_000;

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
export interface Environment {
  readonly clock: QuorumClock;
  /** From 0 up to 1. */
  random(): number;
  mintNonce(): string;
  report(event: QuorumEvent): void;
}

export interface QuorumEvent {
  readonly node: number;
  readonly state: "quarantined" | "certified" | "suspect" | "foreign";
  readonly forMs: number;
  readonly movedMs?: number;
}

export interface QuorumClaim {
  readonly resource: string;
  readonly id: string;
  readonly mode: ModeCode;
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
      /** Whether nodes keep a place in line for it, or may still have what it bid. */
      readonly isRemembered: boolean;
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
    readonly answer: Absent;
  }[];
}

/**
 * Locks on a majority of independent nodes, with a fencing token. Calls back instead of promising, and
 * has time and chance handed in: so the simulator runs this very code, thousands of schedules a second.
 */
export class Quorum implements NodeSet {
  readonly terms: QuorumTerms;
  readonly environment: Environment;
  readonly clockWatch: ClockWatch;
  readonly quarantine: Quarantine;
  readonly highestFence = new HighestFence();
  /** Nodes that let the last question run out of time, a set of bits. Any answer takes them out. */
  silent = 0;
  /** When any node was asked last. */
  askedAt = -Infinity;
  /** How long nodes take to answer, of late. */
  rttMs = 0;
  /**
   * Nodes whose last word about terms was that of clients that agree on something else, a set of bits.
   * A quarantine is no word: whoever is wrong about the terms stays wrong when all nodes are restarted.
   */
  #foreign = 0;
  /** Nodes whose last word was that they are of this quorum, a set of bits. */
  #ours = 0;
  readonly #nodes: readonly QuorumNode[];
  readonly #entries: Entries;

  constructor(nodes: readonly QuorumNode[], terms: QuorumTerms, environment: Environment) {
    this.#nodes = nodes;
    this.terms = terms;
    this.environment = environment;
    this.#entries = new Entries(nodes.length);
    const { clock } = environment;
    // Clocks may run apart while it is waited: the longest grant is over by all of them.
    const longestMs = terms.maxTtlMs * (1 + 2 * terms.drift) + 2;
    const suspect = ({ node, movedMs }: Suspicion) =>
      environment.report({ node, state: "suspect", forMs: longestMs, movedMs });
    this.clockWatch = new ClockWatch(nodes.length, clock, terms.drift, longestMs, suspect);
    this.quarantine = new Quarantine({
      clock,
      waitMs: longestMs,
      mintNonce: () => environment.mintNonce(),
      mayCertify: () => this.mayCertify(),
      ask: (node, request, answered) => this.ask(node, request, answered),
      changed: (node, state) => environment.report({ node, state, forMs: longestMs }),
    });
  }

  get size(): number {
    return this.#nodes.length;
  }

  get clock(): QuorumClock {
    return this.environment.clock;
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
    this.askedAt = sentAt;
    this.#nodes[node]!.ask(request, (answer, us) => {
      this.silent &= ~(1 << node);
      if (answer.kind !== "failed") this.#measure(this.clock.now() - sentAt);
      if (answer.kind !== "failed") this.clockWatch.sample(node, sentAt, us);
      if (answer.kind === "uncertified") this.quarantine.observe(node, answer);
      else if (PROOFS.has(answer.kind)) {
        this.#noteTerms(node, answer.kind === "terms");
        this.quarantine.cleared(node);
      }
      answered(answer);
    });
  }

  #measure(tookMs: number): void {
    this.rttMs = this.rttMs === 0 ? tookMs : this.rttMs + (tookMs - this.rttMs) / 16;
  }

  /** How long one of this client's claims takes to come when it is called. */
  get arrivalMs(): number {
    return Math.ceil(Math.min(MOST_ARRIVAL_MS, LEAST_ARRIVAL_MS + 4 * this.rttMs));
  }

  get writeQuorum(): number {
    return this.terms.writeQuorum;
  }

  awaits(ticket: number): boolean {
    return this.#entries.awaits(ticket);
  }

  /** The claim was refused: if it comes again, those who came later make way for it. */
  waits(entry: Entry): boolean {
    const isFirst = entry.ticket === 0;
    this.#entries.giveTicket(entry, this.clockWatch.estimateUs());
    return isFirst;
  }

  waitsNoMore(entry: Entry): void {
    this.#entries.takeTicket(entry);
  }

  /**
   * A client that is wrong about the terms would make a node its own, and keep everybody else from it.
   * So whoever is contradicted by as many nodes as agree leaves quarantines to others.
   */
  mayCertify(): boolean {
    return this.#foreign === 0 || countBits(this.#ours) > countBits(this.#foreign);
  }

  #noteTerms(node: number, isForeign: boolean): void {
    const bit = 1 << node;
    if (isForeign && (this.#foreign & bit) === 0) {
      this.environment.report({ node, state: "foreign", forMs: Infinity });
    }
    this.#foreign = isForeign ? this.#foreign | bit : this.#foreign & ~bit;
    this.#ours = isForeign ? this.#ours & ~bit : this.#ours | bit;
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

  renew(params: RenewParams, done: (outcome: RenewOutcome) => void): void {
    renewGrant(this, this.#entries.get(params.id), params, (outcome) => {
      // Nothing can be asked about it any more, and nobody will release it.
      if (params.leave && outcome.kind === "renewed") this.#entries.delete(params.id);
      done(outcome);
    });
  }

  /** Of a grant that this client asked for; of others it knows nothing. */
  lockDelayOf(id: string): number {
    return this.#entries.get(id)?.claim.delayMs ?? 0;
  }

  release(ref: ReleaseParams, done: (outcome: ReleaseOutcome) => void): void {
    const entry = this.#entries.get(ref.id);
    if (entry !== undefined) {
      entry.isOver = true;
      entry.turn++;
    }
    this.#entries.delete(ref.id);
    new Release(this, ref, entry, ALL).settle(done);
  }

  /** Ends what was given up on these nodes, a set of bits. */
  takeBack(entry: Entry, nodes: number, restMs: number, then: (isSure: boolean) => void): void {
    const { claim, givenUp: upTo, givenUpBy: order } = entry;
    entry.takenBack(nodes);
    const patienceMs = Math.min(this.terms.nodeTimeoutMs, restMs);
    const ref = { resource: claim.resource, id: claim.id, tombstoneMs: 0, patienceMs };
    new Release(this, ref, entry, { upTo, order, tell: false }).takeBack(nodes, then);
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
