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

/** A called process may be busy. A called process that has died delays the others for this long. */
const LEAST_ARRIVAL_MS = 500;
const MOST_ARRIVAL_MS = 2_000;

/** The terms of a quorum. They are the same for all clients, except nodeTimeoutMs. */
export interface QuorumTerms {
  readonly writeQuorum: number;
  /** The longest sum of ttl and lock-delay, which is also the length of a quarantine. */
  readonly maxTtlMs: number;
  readonly maxSkewMs: number;
  /** How long one node may take within one call. */
  readonly nodeTimeoutMs: number;
  /** How much the rates of two clocks may differ. */
  readonly drift: number;
}

/** What the nodes do not decide: time, randomness and reports. */
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
  /** The caller is answered soon after this time. */
  readonly patienceMs: number;
  /** Rises with every call of one caller. */
  readonly order: number;
}

export type AcquireOutcome =
  | {
      readonly kind: "granted";
      readonly fence: number;
      readonly tokens: number;
      /** The least life that enough nodes had left for it when they answered. */
      readonly ttlMs: number;
    }
  | {
      readonly kind: "busy";
      readonly holders: readonly NodeHolder[];
      readonly retryAfterMs: number;
      /** Whether nodes keep a place in the queue for it, or may still have its bid. */
      readonly isRemembered: boolean;
    }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | Unanswered
  /** A newer call with the same id, or its release, replaced this call and is not answered yet. */
  | { readonly kind: "overtaken" }
  | { readonly kind: "terms"; readonly node: number; readonly terms: string };

/** Too few nodes counted. */
export interface Unanswered {
  readonly kind: "unanswered";
  readonly effect: "none" | "unknown";
  /** What each node that does not count answered. */
  readonly absent: readonly {
    readonly node: number;
    readonly answer: Absent;
  }[];
}

/**
 * Locks on a majority of independent nodes, with a fencing token. It uses callbacks instead of promises,
 * and takes clock and randomness as parameters, so that the simulator can run thousands of schedules a
 * second through this very code.
 */
export class Quorum implements NodeSet {
  readonly terms: QuorumTerms;
  readonly environment: Environment;
  readonly clockWatch: ClockWatch;
  readonly quarantine: Quarantine;
  readonly highestFence = new HighestFence();
  /** Nodes that did not answer the last request in time, a set of bits. Any answer removes a node. */
  silent = 0;
  /** When a node was last asked. */
  askedAt = -Infinity;
  /** A moving average of the time that nodes take to answer. */
  rttMs = 0;
  /**
   * Nodes whose last answer about terms showed other terms than ours, a set of bits. A quarantine does
   * not change this: a client with wrong terms stays wrong when all nodes are restarted.
   */
  #foreign = 0;
  /** Nodes whose last answer about terms agreed with ours, a set of bits. */
  #ours = 0;
  readonly #nodes: readonly QuorumNode[];
  readonly #entries: Entries;

  constructor(nodes: readonly QuorumNode[], terms: QuorumTerms, environment: Environment) {
    this.#nodes = nodes;
    this.terms = terms;
    this.environment = environment;
    this.#entries = new Entries(nodes.length);
    const { clock } = environment;
    // Clocks drift apart during the wait, so it ends when the longest grant is over by all clocks.
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

  /** How long to wait for one node in a call about grants of this ttl: far below the ttl. */
  patienceMs(ttlMs: number): number {
    return Math.min(this.terms.nodeTimeoutMs, Math.max(ttlMs / 3, 50));
  }

  /** Every request goes through here, so every answer updates the node's clock and quarantine. */
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

  /** How long a claim of this client takes to arrive when a node calls it. */
  get arrivalMs(): number {
    return Math.ceil(Math.min(MOST_ARRIVAL_MS, LEAST_ARRIVAL_MS + 4 * this.rttMs));
  }

  get writeQuorum(): number {
    return this.terms.writeQuorum;
  }

  awaits(ticket: number): boolean {
    return this.#entries.awaits(ticket);
  }

  /** The claim was refused. If it comes again, claims with later tickets give way. True the first time. */
  waits(entry: Entry): boolean {
    const isFirst = entry.ticket === 0;
    this.#entries.giveTicket(entry, this.clockWatch.estimateUs());
    return isFirst;
  }

  waitsNoMore(entry: Entry): void {
    this.#entries.takeTicket(entry);
  }

  /**
   * A client with wrong terms would certify a node for them, and so exclude all other clients from it.
   * So a client that at least as many nodes contradict as confirm leaves certifying to others.
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

  /** A claim with the same id may be repeated before this call is answered. */
  acquire(claim: QuorumClaim, call: QuorumCall, done: (outcome: AcquireOutcome) => void): void {
    const entry = this.#entries.for(claim);
    entry.calls++;
    entry.outcome = null;
    const turn = ++entry.turn;
    const answered = (outcome: AcquireOutcome) => {
      entry.calls--;
      this.#entries.answered(entry, this.clock.now());
      done(outcome);
      if (turn !== entry.turn) return;
      entry.outcome = outcome;
      for (const follow of [...entry.followers]) follow(outcome);
    };
    new Acquisition(this, entry, turn, call, answered).start();
  }

  /** Whether this call is still the newest one for its claim. */
  speaksFor(entry: Entry, turn: number): boolean {
    return turn === entry.turn;
  }

  renew(params: RenewParams, done: (outcome: RenewOutcome) => void): void {
    const entry = this.#entries.get(params.id);
    renewGrant(this, entry, params, (outcome) => {
      if (outcome.kind === "renewed") entry?.lives(params.ttlMs, this.clock.now());
      // The grant was left behind: nobody will renew or release it.
      if (params.leave && outcome.kind === "renewed") this.#entries.delete(params.id);
      done(outcome);
    });
  }

  /** The lock-delay of a claim of this client; 0 for an unknown id. */
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

  /** Releases given-up attempts on these nodes, a set of bits. */
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

/** Answers that only a certified node gives, even if it was certified for other terms. */
const PROOFS: ReadonlySet<NodeAnswer["kind"]> = new Set([
  ...(["accepted", "known", "busy", "counter", "skew", "renewed"] as const),
  ...(["certified", "view", "checked", "terms"] as const),
]);
