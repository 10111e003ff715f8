import type { RenewOutcome, RenewParams } from "holdfast/internal/quorum";
import type { Checker, SimulatedLease } from "../checker.js";
import type { Plan } from "../plan.js";
import type { Random } from "../random.js";
import { Belief } from "./belief.js";
import type { Process } from "./process.js";

/** What a holding needs of its holder, and what it calls at its end. */
export interface Holder {
  readonly index: number;
  readonly process: Process;
  readonly random: Random;
  readonly plan: Plan;
  readonly checker: Checker;
  readonly drift: number;
  renew(
    wish: Pick<RenewParams, "id" | "ttlMs" | "leave" | "index">,
    answered: (outcome: RenewOutcome) => void,
  ): void;
  /** The lease is over. Releases it; then the holder continues. */
  release(): void;
  /** The lease is over and is not released. The holder continues. */
  goOn(): void;
}

export interface SimulatedGrant {
  readonly id: string;
  readonly resource: string;
  readonly mode: "x" | "s";
  readonly fence: number;
  readonly tokens: number;
  readonly ttlMs: number;
  readonly since: number;
}

/** One lease from its grant on: work, renewals, and one of its ends. */
export class ClientLease {
  readonly #holder: Holder;
  readonly #id: string;
  readonly #belief: Belief;
  readonly #lease: SimulatedLease;
  #index = 0;
  #isOver = false;
  #isRenewing = false;

  constructor(holder: Holder, grant: SimulatedGrant) {
    const { id, resource, mode, fence, tokens, ttlMs, since } = grant;
    const { index, process, plan, drift } = holder;
    this.#holder = holder;
    this.#id = id;
    this.#belief = new Belief(since, ttlMs, drift);
    this.#lease = {
      ...{ client: index, id, resource, mode, fence, tokens, isReleased: false },
      grantedAt: process.trueNow,
      until: process.trueTime(this.#belief.until),
      closedMs: plan.lockDelayMs * (1 - drift),
    };
  }

  start() {
    const { process, random, plan, checker } = this.#holder;
    const { ttlMs, unrenewed } = plan;
    if (this.#isLost) return this.#finish();
    checker.granted(this.#lease, process.trueNow);
    const workMs = this.#workMs();
    const renews = !random.chance(unrenewed);
    const endsAt = process.now() + workMs;
    const step = () => {
      if (this.#isOver) return;
      if (process.now() >= endsAt || this.#isLost) return this.#finish();
      if (renews && !this.#isRenewing) this.#renew();
      process.timer(Math.min(this.#restMs(), Math.max(1, endsAt - process.now())), step);
    };
    process.timer(Math.min(ttlMs / 3, workMs), step);
  }

  /** Mostly short. Where ttls differ, long enough for several renewals. */
  #workMs(): number {
    const { random, plan } = this.#holder;
    const { ttlMs, otherTtls, tidy, holdMs } = plan;
    if (this.#isLasting) return holdMs;
    if (tidy) return random.between(1, 30);
    return ttlMs * (otherTtls > 0 ? random.between(2, 8) : 1.5 * random.next() ** 2);
  }

  /** The time until the next renewal. Users may choose rare renewals. */
  #restMs(): number {
    const { random, plan } = this.#holder;
    return this.#belief.ttlMs * (plan.otherTtls > 0 ? random.between(0.2, 0.8) : 1 / 3);
  }

  #nextTtlMs(): number {
    const { random, plan } = this.#holder;
    const { otherTtls, maxTtlMs, lockDelayMs, ttlMs } = plan;
    if (!random.chance(otherTtls)) return this.#belief.ttlMs;
    return random.pick([ttlMs / 2, maxTtlMs - lockDelayMs]);
  }

  #renew(): void {
    this.#isRenewing = true;
    this.#ask(false, (outcome, confirm) => {
      this.#isRenewing = false;
      if (this.#isOver) return;
      // A lease whose validity ran out is lost, whatever the nodes say later.
      if (this.#isLost || outcome.kind === "gone") this.#finish();
      else confirm();
    });
  }

  /**
   * Like the core's letExpire: leaves the grant to its ttl. Until then it also excludes this
   * process.
   */
  #leave(): void {
    this.#ask(true, (_, confirm) => {
      if (!this.#isLost) confirm();
      this.#holder.goOn();
    });
  }

  #ask(leave: boolean, answered: (outcome: RenewOutcome, confirm: () => void) => void): void {
    const { process, random, checker } = this.#holder;
    const sentAt = process.now();
    const ttlMs = this.#nextTtlMs();
    this.#belief.expect(sentAt, ttlMs);
    this.#believe();
    // Sometimes the process hands the lease over locally, which uses the next of its tokens.
    const { tokens, fence, resource } = this.#lease;
    if (tokens > this.#index + 1 && random.chance(0.3)) this.#index++;
    const token = fence + this.#index;
    const isRevoked = checker.isRevoked(resource, token);
    this.#holder.renew({ id: this.#id, ttlMs, leave, index: this.#index }, (outcome) =>
      answered(outcome, () => {
        if (outcome.kind !== "renewed") return;
        if (isRevoked) checker.fail(`token ${token} was renewed after it was revoked`);
        this.#belief.confirm(sentAt, outcome.ttlMs);
        this.#believe();
      }),
    );
  }

  #believe(): void {
    this.#lease.until = this.#holder.process.trueTime(this.#belief.until);
  }

  get #isLost(): boolean {
    return this.#lease.until <= this.#holder.process.trueNow;
  }

  /** Whether this is the lease that must survive all faults of the plan. */
  get #isLasting(): boolean {
    return this.#holder.plan.holdMs > 0 && this.#lease.client === 0;
  }

  #finish() {
    if (this.#isOver) return;
    this.#isOver = true;
    const { random, plan, checker, process } = this.#holder;
    const isLost = this.#isLost;
    const endsAt = this.#lease.grantedAt + plan.holdMs * 0.99;
    if (this.#isLasting && (isLost || process.trueNow < endsAt)) {
      checker.fail("a lease was lost although nodes failed one after the other");
    }
    // Like the core: a lost lease with a lock-delay is not released, so that the resource stays
    // closed.
    if (isLost && plan.lockDelayMs > 0) return this.#holder.goOn();
    if (!isLost && random.chance(plan.left)) return this.#leave();
    this.#lease.isReleased = true;
    this.#holder.release();
  }
}
