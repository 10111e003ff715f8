import {
  type AcquireOutcome,
  Quorum,
  type QuorumClock,
  type QuorumNode,
  type QuorumTerms,
} from "holdfast/quorum/core";
import type { Checker, SimulatedLease } from "./checker.js";
import type { Receiver } from "./network.js";
import type { Plan } from "./plan.js";
import type { Random } from "./random.js";
import type { Happening, World } from "./world.js";

const RESOURCE = "r";
const TOMBSTONE_MS = 10_000;
const CALL_MS = 1_000;

export interface ContenderFlaws {
  /** Counts a grant's life from the answer instead of the question. */
  readonly countsFromReply?: boolean;
}

/** A process that locks, works, renews and releases some times, with the library's own quorum code. */
export class Contender implements Receiver {
  readonly #index: number;
  readonly #world: World;
  readonly #random: Random;
  readonly #plan: Plan;
  readonly #checker: Checker;
  readonly #flaws: ContenderFlaws;
  readonly #rate: number;
  readonly #offsetMs: number;
  readonly #done: () => void;
  #quorum!: Quorum;
  #left: number;
  #claims = 0;
  #isDead = false;
  #isPaused = false;
  #backlog: (() => void)[] = [];

  constructor(
    world: World,
    random: Random,
    plan: Plan,
    index: number,
    checker: Checker,
    flaws: ContenderFlaws,
    done: () => void,
  ) {
    this.#world = world;
    this.#random = random;
    this.#plan = plan;
    this.#index = index;
    this.#checker = checker;
    this.#flaws = flaws;
    this.#done = done;
    this.#left = plan.cycles;
    this.#rate = 1 + random.between(-plan.drift, plan.drift);
    this.#offsetMs = random.between(0, 1_000);
  }

  start(nodes: readonly QuorumNode[], terms: QuorumTerms): void {
    const clock: QuorumClock = {
      now: () => this.#now(),
      timer: (delayMs, callback) => this.#timer(delayMs, callback),
    };
    let nonces = 0;
    this.#quorum = new Quorum(nodes, terms, {
      clock,
      random: () => this.#random.next(),
      mintNonce: () => `nonce-${this.#index}-${nonces++}`,
      report: () => {},
    });
    this.#timer(this.#random.between(0, 10), () => this.#claim());
  }

  /** What arrives at a paused process waits for it. */
  receive(act: () => void): void {
    if (this.#isDead) return;
    if (this.#isPaused) this.#backlog.push(act);
    else act();
  }

  die(): void {
    if (this.#isDead) return;
    this.#isDead = true;
    if (this.#left > 0) this.#done();
  }

  pause(forMs: number): void {
    this.#isPaused = true;
    this.#world.after(forMs, () => {
      this.#isPaused = false;
      const backlog = this.#backlog;
      this.#backlog = [];
      for (const act of backlog) this.receive(act);
    });
  }

  #claim(): void {
    const mode = this.#random.chance(this.#plan.readers) ? "s" : "x";
    this.#try(`c${this.#index}-${this.#claims++}`, mode);
  }

  #try(id: string, mode: "x" | "s"): void {
    const since = this.#now();
    const { ttlMs } = this.#plan;
    const claim = {
      resource: RESOURCE,
      id,
      mode,
      ttlMs,
      delayMs: 0,
      tokens: 1,
      label: "",
    } as const;
    this.#quorum.acquire(claim, (outcome) => this.#answered(id, mode, since, outcome));
  }

  #answered(id: string, mode: "x" | "s", since: number, outcome: AcquireOutcome) {
    if (outcome.kind === "granted") {
      const from = this.#flaws.countsFromReply ? this.#now() : since;
      return this.#hold(id, mode, from, outcome.fence, outcome.tokens);
    }
    if (outcome.kind === "busy") {
      const laterMs = Math.min(outcome.retryAfterMs, this.#random.between(30, 200));
      this.#timer(laterMs, () => this.#try(id, mode));
      return;
    }
    // As the core does it: what may have happened is undone, and the next claim has another id.
    const again = () => this.#timer(this.#random.between(5, 60), () => this.#claim());
    if (outcome.kind === "gone") again();
    else this.#release(id, TOMBSTONE_MS, again);
  }

  #hold(id: string, mode: "x" | "s", since: number, fence: number, tokens: number) {
    const { ttlMs, unrenewed, tidy } = this.#plan;
    const lease: SimulatedLease = {
      ...{ client: this.#index, mode, fence, tokens, isOver: false },
      until: this.#trueTime(this.#endOf(since)),
    };
    if (lease.until <= this.#world.now) return this.#finish(id, lease);
    this.#checker.granted(lease, this.#world.now);
    const workMs = tidy ? this.#random.between(1, 30) : 1.5 * ttlMs * this.#random.next() ** 2;
    const renews = !this.#random.chance(unrenewed);
    const endsAt = this.#now() + workMs;
    const step = () => {
      if (lease.isOver) return;
      if (this.#now() >= endsAt || lease.until <= this.#world.now) return this.#finish(id, lease);
      if (renews) this.#renew(id, lease);
      this.#timer(Math.min(ttlMs / 3, Math.max(1, endsAt - this.#now())), step);
    };
    this.#timer(Math.min(ttlMs / 3, workMs), step);
  }

  #renew(id: string, lease: SimulatedLease): void {
    const sentAt = this.#now();
    const { ttlMs } = this.#plan;
    this.#quorum.renew({ resource: RESOURCE, id, ttlMs }, (outcome) => {
      if (lease.isOver) return;
      // Whatever the nodes say later: a lease that has run out is lost.
      if (lease.until <= this.#world.now || outcome.kind === "gone") return this.#finish(id, lease);
      if (outcome.kind === "renewed") lease.until = this.#trueTime(this.#endOf(sentAt));
    });
  }

  #finish(id: string, lease: SimulatedLease): void {
    if (lease.isOver) return;
    lease.isOver = true;
    this.#release(id, 0, () => {
      if (this.#left === 0) return;
      this.#left--;
      if (this.#left === 0) this.#exit();
      else this.#timer(this.#random.between(0, 20), () => this.#claim());
    });
  }

  /** A process that has finished ends: what is answered later reaches nobody. */
  #exit(): void {
    this.#isDead = true;
    this.#done();
  }

  #release(id: string, tombstoneMs: number, then: () => void): void {
    const ref = { resource: RESOURCE, id, tombstoneMs, patienceMs: CALL_MS };
    this.#quorum.release(ref, () => then());
  }

  #endOf(since: number): number {
    return since + this.#plan.ttlMs * (1 - this.#quorum.terms.drift);
  }

  #trueTime(local: number): number {
    return (local - this.#offsetMs) / this.#rate;
  }

  #now(): number {
    return this.#offsetMs + this.#world.now * this.#rate;
  }

  #timer(delayMs: number, act: () => void): Happening {
    let isOff = false;
    const fire = () => {
      if (!isOff) act();
    };
    const planned = this.#world.after(delayMs / this.#rate, () => this.receive(fire));
    return {
      cancel: () => {
        isOff = true;
        planned.cancel();
      },
    };
  }
}
