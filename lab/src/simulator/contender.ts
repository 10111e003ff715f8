import {
  type AcquireOutcome,
  Quorum,
  type QuorumNode,
  type QuorumTerms,
} from "holdfast/quorum/core";
import type { Checker } from "./checker.js";
import { type Holder, Holding } from "./holding.js";
import type { Plan } from "./plan.js";
import { Process } from "./process.js";
import type { Random } from "./random.js";
import type { World } from "./world.js";

const RESOURCE = "r";
const TOMBSTONE_MS = 10_000;
const CALL_MS = 1_000;
const MOST_REPEATS = 3;

export interface ContenderFlaws {
  /** Counts a grant's life from the answer instead of the question. */
  readonly countsFromReply?: boolean;
  /** Of several calls about one claim each judges and gives up for all. */
  readonly everyCallSpeaks?: boolean;
}

class Outspoken extends Quorum {
  override speaksFor(): boolean {
    return true;
  }
}

/** One claim: the same id under which it is repeated. */
interface Wish {
  readonly id: string;
  readonly mode: "x" | "s";
  repeats: number;
}

/** A process that locks, works, renews and releases some times, with the library's own quorum code. */
export class Contender extends Process {
  readonly #index: number;
  readonly #random: Random;
  readonly #plan: Plan;
  readonly #checker: Checker;
  readonly #flaws: ContenderFlaws;
  readonly #done: () => void;
  #quorums: Quorum[] = [];
  #left: number;
  #claims = 0;
  /** The number of the question under way: an answer to an earlier one comes too late. */
  #question = 0;
  /** Numbers all calls, as the core does. */
  #order = 0;

  constructor(
    world: World,
    random: Random,
    plan: Plan,
    index: number,
    checker: Checker,
    flaws: ContenderFlaws,
    done: () => void,
  ) {
    super(world, random, plan.drift);
    this.#random = random;
    this.#plan = plan;
    this.#index = index;
    this.#checker = checker;
    this.#flaws = flaws;
    this.#done = done;
    this.#left = plan.cycles;
  }

  start(nodes: readonly QuorumNode[], terms: QuorumTerms): void {
    let nonces = 0;
    const Kind = this.#flaws.everyCallSpeaks ? Outspoken : Quorum;
    const surroundings = {
      clock: this,
      random: () => this.#random.next(),
      mintNonce: () => `nonce-${this.#index}-${nonces++}`,
      report: () => {},
    };
    this.#quorums = [0, 1].map(() => new Kind(nodes, terms, surroundings));
    this.timer(this.#random.between(0, 10), () => this.#claim());
  }

  get #quorum(): Quorum {
    const { detours } = this.#plan;
    return this.#quorums[detours > 0 && this.#random.chance(detours) ? 1 : 0]!;
  }

  die(): void {
    if (this.isDead) return;
    this.end();
    if (this.#left > 0) this.#done();
  }

  #claim(): void {
    const mode = this.#random.chance(this.#plan.readers) ? "s" : "x";
    this.#try({ id: `c${this.#index}-${this.#claims++}`, mode, repeats: 0 });
  }

  /** As the core does it: an answer that comes after its deadline, or after a repeat, is not heeded. */
  #try(wish: Wish): void {
    const since = this.now();
    const { ttlMs, lockDelayMs: delayMs, repeatMs } = this.#plan;
    const question = ++this.#question;
    const late = () => {
      if (question === this.#question) this.#repeat(wish);
    };
    const deadline = repeatMs === 0 ? null : this.timer(repeatMs, late);
    const { id, mode } = wish;
    const claim = { resource: RESOURCE, id, mode, ttlMs, delayMs, tokens: 1, label: "" } as const;
    const call = { patienceMs: CALL_MS, order: ++this.#order };
    this.#quorum.acquire(claim, call, (outcome) => {
      if (question !== this.#question) return;
      deadline?.cancel();
      this.#answered(wish, since, outcome);
    });
  }

  #repeat(wish: Wish) {
    if (wish.repeats++ < MOST_REPEATS) return this.#try(wish);
    this.#question++;
    this.#abandon(wish);
  }

  #answered(wish: Wish, since: number, outcome: AcquireOutcome): void {
    if (outcome.kind === "granted") {
      if (this.#random.chance(this.#plan.unheard)) {
        this.timer(this.#random.between(0, 60), () => this.#try(wish));
        return;
      }
      const from = this.#flaws.countsFromReply ? this.now() : since;
      new Holding(this.#holder(wish), { ...wish, ...outcome, since: from }).start();
    } else if (outcome.kind === "busy") {
      const laterMs = Math.min(outcome.retryAfterMs, this.#random.between(30, 200));
      this.timer(laterMs, () => this.#try(wish));
    } else if (outcome.kind === "gone") this.#claimLater();
    else this.#abandon(wish);
  }

  /** As the core does it: what may have happened is undone, and the next claim has another id. */
  #abandon({ id }: Wish): void {
    this.#release(id, TOMBSTONE_MS, () => this.#claimLater());
  }

  #claimLater(): void {
    this.timer(this.#random.between(5, 60), () => this.#claim());
  }

  #holder({ repeats }: Wish): Holder {
    // A call without an answer may still be under way.
    const tombstoneMs = repeats > 0 ? TOMBSTONE_MS : 0;
    return {
      ...{ index: this.#index, process: this, random: this.#random, plan: this.#plan },
      ...{ checker: this.#checker, drift: this.#quorums[0]!.terms.drift },
      renew: (wish, answered) => {
        const call = { resource: RESOURCE, order: ++this.#order, index: 0 };
        this.#quorum.renew({ ...call, ...wish }, answered);
      },
      release: (id) => this.#release(id, tombstoneMs, () => this.#next()),
      goOn: () => this.#next(),
    };
  }

  #next(): void {
    if (this.#left === 0) return;
    this.#left--;
    if (this.#left > 0) {
      this.timer(this.#random.between(0, 20), () => this.#claim());
      return;
    }
    this.end();
    this.#done();
  }

  #release(id: string, tombstoneMs: number, then: () => void): void {
    const ref = { resource: RESOURCE, id, tombstoneMs, patienceMs: CALL_MS };
    this.#quorum.release(ref, () => then());
  }
}
