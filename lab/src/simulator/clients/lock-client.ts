import {
  type AcquireOutcome,
  type NodeHolder,
  Quorum,
  type QuorumNode,
  type QuorumTerms,
} from "holdfast/internal/quorum";
import type { Checker } from "../checker.js";
import type { Plan } from "../plan.js";
import type { Random } from "../random.js";
import type { World } from "../world.js";
import { ClientLease, type Holder } from "./client-lease.js";
import { oversee } from "./oversight.js";
import { Process } from "./process.js";
import { wrongQuorums } from "./wrong-quorums.js";

const TOMBSTONE_MS = 10_000;
const CALL_MS = 1_000;
/** The default of the core and of the quorum. */
const DRIFT = 0.01;
const MOST_REPEATS = 3;
/** A request, its answer and the follow-up, each as slow as a tidy plan allows. */
const SETTLED_MS = 130;

export interface ClientFlaws {
  /** Counts a grant's validity from the answer instead of the request. */
  readonly countsFromReply?: boolean;
  /** Does not shorten validity by the drift of clocks. */
  readonly ignoresDrift?: boolean;
  /** Runs quorum code that is wrong in one way. */
  readonly kind?: keyof typeof wrongQuorums;
}

/** One claim. Repeats of it have the same id. */
interface ClaimRequest {
  readonly id: string;
  readonly resource: string;
  readonly mode: "x" | "s";
  repeats: number;
}

/**
 * A process that acquires, works, renews and releases several times, with the library's quorum
 * code.
 */
export class LockClient extends Process {
  readonly #index: number;
  readonly #random: Random;
  readonly #plan: Plan;
  readonly #checker: Checker;
  readonly #flaws: ClientFlaws;
  readonly #hasGrant: (id: string) => boolean;
  readonly #done: () => void;
  #quorums: Quorum[] = [];
  #left: number;
  #claims = 0;
  /** The number of the current request. An answer to an earlier one comes too late. */
  #question = 0;
  /** The number of the last call. The core numbers calls in the same way. */
  #order = 0;

  constructor(
    world: World,
    random: Random,
    plan: Plan,
    index: number,
    checker: Checker,
    flaws: ClientFlaws,
    hasGrant: (id: string) => boolean,
    done: () => void,
  ) {
    super(world, random, plan.drift);
    this.#random = random;
    this.#plan = plan;
    this.#index = index;
    this.#checker = checker;
    this.#flaws = flaws;
    this.#hasGrant = hasGrant;
    this.#done = done;
    this.#left = plan.cycles;
  }

  start(nodes: readonly QuorumNode[], terms: QuorumTerms): void {
    let nonces = 0;
    const Kind = this.#flaws.kind === undefined ? Quorum : wrongQuorums[this.#flaws.kind];
    const surroundings = {
      clock: this,
      random: () => this.#random.next(),
      mintNonce: () => `nonce-${this.#index}-${nonces++}`,
      report: () => {},
    };
    const own = this.#flaws.ignoresDrift ? { ...terms, drift: 0 } : terms;
    this.#quorums = [0, 1].map(() => new Kind(nodes, own, surroundings));
    // The client that holds for the whole plan starts first.
    const afterMs = this.#plan.holdMs > 0 && this.#index > 0 ? 30 : 0;
    this.timer(afterMs + this.#random.between(0, 10), () => this.#claim());
  }

  get #quorum(): Quorum {
    const { detours } = this.#plan;
    return this.#quorums[detours > 0 && this.#random.chance(detours) ? 1 : 0]!;
  }

  /** Ends the process. Returns whether it still had work to do. */
  die(): boolean {
    if (this.isDead) return false;
    this.end();
    return this.#left > 0;
  }

  #claim(): void {
    const mode = this.#random.chance(this.#plan.readers) ? "s" : "x";
    const resource = `r${this.#plan.resources > 1 ? this.#random.below(this.#plan.resources) : ""}`;
    this.#try({ id: `c${this.#index}-${this.#claims++}`, resource, mode, repeats: 0 });
  }

  /** Like the core: ignores an answer that comes after its deadline or after a repeat. */
  #try(request: ClaimRequest): void {
    const since = this.now();
    const { ttlMs, lockDelayMs: delayMs, repeatMs } = this.#plan;
    const question = ++this.#question;
    const late = () => {
      if (question === this.#question) this.#repeat(request);
    };
    const deadline = repeatMs === 0 ? null : this.timer(repeatMs, late);
    const { id, resource, mode } = request;
    const { tokens } = this.#plan;
    const claim = { resource, id, mode, ttlMs, delayMs, tokens, label: "" } as const;
    const call = { patienceMs: CALL_MS, order: ++this.#order };
    this.#quorum.acquire(claim, call, (outcome) => {
      if (question !== this.#question) return;
      deadline?.cancel();
      this.#answered(request, since, outcome);
    });
  }

  #repeat(request: ClaimRequest) {
    if (request.repeats++ < MOST_REPEATS) return this.#try(request);
    this.#question++;
    this.#abandon(request);
  }

  #answered(request: ClaimRequest, since: number, outcome: AcquireOutcome): void {
    if (outcome.kind === "granted") {
      if (this.#random.chance(this.#plan.unheard)) {
        this.timer(this.#random.between(0, 60), () => this.#try(request));
        return;
      }
      const from = this.#flaws.countsFromReply ? this.now() : since;
      new ClientLease(this.#holder(request), { ...request, ...outcome, since: from }).start();
    } else if (outcome.kind === "busy") {
      const laterMs = Math.min(outcome.retryAfterMs, this.#random.between(30, 200));
      this.timer(laterMs, () => this.#try(request));
      if (this.#plan.tidy) this.#expectNothingOf(request);
      if (this.#plan.revocations > 0) this.#oversee(request, outcome.holders[0]);
    } else if (outcome.kind === "gone") this.#claimLater();
    else this.#abandon(request);
  }

  /** A claim that is told to wait has no grant on any node, once all messages have arrived. */
  #expectNothingOf({ id }: ClaimRequest): void {
    const question = this.#question;
    this.timer(SETTLED_MS, () => {
      if (question !== this.#question || !this.#hasGrant(id)) return;
      this.#checker.fail(
        `client ${this.#index} waits, and a node still has an attempt that it gave up`,
      );
    });
  }

  #oversee({ resource }: ClaimRequest, seen: NodeHolder | undefined): void {
    if (seen === undefined || !this.#random.chance(0.5)) return;
    const isRevoked = this.#random.chance(this.#plan.revocations);
    oversee(this.#quorums[0]!, this.#checker, resource, seen, isRevoked, this.trueNow);
  }

  /** Like the core: releases what may have been granted. The next claim has another id. */
  #abandon(request: ClaimRequest): void {
    this.#release(request, TOMBSTONE_MS, () => this.#claimLater());
  }

  #claimLater(): void {
    this.timer(this.#random.between(5, 60), () => this.#claim());
  }

  #holder(request: ClaimRequest): Holder {
    // A call that got no answer may still arrive.
    const tombstoneMs = request.repeats > 0 ? TOMBSTONE_MS : 0;
    const { resource } = request;
    return {
      ...{ index: this.#index, process: this, random: this.#random, plan: this.#plan },
      ...{ checker: this.#checker, drift: this.#flaws.ignoresDrift ? 0 : DRIFT },
      renew: (what, answered) =>
        this.#quorum.renew({ resource, order: ++this.#order, ...what }, answered),
      release: () => this.#release(request, tombstoneMs, () => this.#next()),
      goOn: () => this.#next(),
    };
  }

  #next(): void {
    if (this.#left === 0) return;
    this.#left--;
    if (this.#left > 0) {
      this.timer(this.#random.between(0, this.#plan.restMs), () => this.#claim());
      return;
    }
    this.end();
    this.#done();
  }

  #release({ id, resource }: ClaimRequest, tombstoneMs: number, then: () => void): void {
    const ref = { resource, id, tombstoneMs, patienceMs: CALL_MS };
    this.#quorum.release(ref, () => then());
  }
}
