import { inspect } from "node:util";
import type { Mode } from "../../engine.js";
import { LeaseLostError, type LossReason, UsageError } from "../../errors.js";
import { channels, type Events, emit } from "../../events.js";
import { formatSequencer } from "../../fencing/sequencer.js";
import type { Terms } from "../../options.js";
import { type Known, refuseUnknown } from "../input/known-options.js";
import type { Grant } from "./grant.js";
import type { DirectController, LeaseController } from "./lease-controller.js";

export interface RenewOptions {
  /** How long the grant lives from now on without another renewal. */
  readonly ttlMs?: number;
}

/** What a holder holds. Every value is computed from the clocks at the moment of the call. */
export interface Lease extends AsyncDisposable {
  readonly resource: string;
  readonly mode: Mode;
  readonly label: string;
  /**
   * Larger than the token of every earlier grant of this resource. Register it where the data lives
   * before reading, and check it in the transaction that writes. A comparison at the write alone is
   * too late.
   */
  readonly token: bigint;
  /** "mode:token:percent-encoded-name", for the resource to check. */
  readonly sequencer: string;
  /** True while nobody else can have been granted the resource. */
  readonly held: boolean;
  /** Aborts when the lease is lost; its reason is the LeaseLostError. A release does not abort it. */
  readonly signal: AbortSignal;
  /** Throws LeaseLostError unless held; UsageError after a release. */
  assertHeld(): void;
  /** How long the lease is valid without another renewal. */
  remainingMs(): number;
  /** Renews now, with a new ttlMs if given. */
  renew(options?: RenewOptions): Promise<void>;
  /** Releases the resource. "gone" means that it was no longer ours; nothing was changed then. */
  release(): Promise<"released" | "gone">;
}

const RENEW: Known<RenewOptions> = { ttlMs: true };

export class HeldLease implements Lease {
  readonly grant: Grant;
  readonly terms: Terms;
  readonly token: bigint;
  readonly acquiredAt: number;
  readonly #direct: DirectController;
  /** The same object as #direct, unless a cohort may hand the grant over. */
  readonly #controller: LeaseController;
  /**
   * Set when the holder gives the lease up. Listeners of events may run before #released is set.
   */
  #isEnding = false;
  #released: Promise<"released" | "gone"> | null = null;
  #lost: LeaseLostError | null = null;
  #aborter: AbortController | null = null;

  constructor(
    grant: Grant,
    index: number,
    terms: Terms,
    direct: DirectController,
    controller: LeaseController,
    acquiredAt: number,
  ) {
    this.grant = grant;
    this.terms = terms;
    this.token = index === 0 ? grant.firstToken : grant.firstToken + BigInt(index);
    this.#direct = direct;
    this.#controller = controller;
    this.acquiredAt = acquiredAt;
    grant.attachLease(this);
  }

  /** The instant at which maxHoldMs ends the lease. */
  get holdUntil(): number {
    return this.acquiredAt + this.terms.maxHoldMs;
  }

  get resource(): string {
    return this.grant.resource;
  }

  get mode(): Mode {
    return this.grant.mode;
  }

  get label(): string {
    return this.terms.label;
  }

  get sequencer(): string {
    return formatSequencer(this);
  }

  get held(): boolean {
    return !this.#isEnding && !this.checkLoss();
  }

  /** Whether the keeper renews the grant for this lease. */
  get isManaged(): boolean {
    return this.grant.group.managed && this.grant.lease === this;
  }

  get lost(): LeaseLostError | null {
    return this.#lost;
  }

  /**
   * Whether close() told the holder to stop and nobody else can have been granted the resource yet.
   */
  get isStillOurs(): boolean {
    if (this.#isEnding || this.#lost?.reason !== "closed") return false;
    return this.#direct.clock.now() < this.grant.group.validUntil;
  }

  get signal(): AbortSignal {
    if (this.#aborter === null) {
      this.#aborter = new AbortController();
      if (this.#lost) this.#aborter.abort(this.#lost);
    }
    if (!this.#isEnding) this.checkLoss();
    return this.#aborter.signal;
  }

  assertHeld(): void {
    if (this.held) return;
    throw this.#lost ?? new UsageError(`lease of "${this.resource}" was released already`);
  }

  remainingMs(): number {
    return this.held ? Math.max(0, this.grant.group.lostAt - this.#direct.clock.now()) : 0;
  }

  async renew(options: RenewOptions = {}): Promise<void> {
    refuseUnknown(options, RENEW, "renew");
    this.assertHeld();
    await this.#direct.renew(this, options.ttlMs);
  }

  release(): Promise<"released" | "gone"> {
    // checkLoss() may run listeners that release this lease; their release counts then.
    if (!this.#isEnding) this.checkLoss();
    if (this.#released !== null) return this.#released;
    // A listener called this during the release, so it gets the answer of that release.
    if (this.#isEnding) return Promise.resolve().then(() => this.release());
    this.#isEnding = true;
    this.#released = this.#release();
    return this.#released;
  }

  /** Like leave(), but waits no longer than one call may take, as releaseInTime() does. */
  leaveInTime(forMs: number): Promise<"released" | "gone" | null> {
    return this.#inTime(this.leave(forMs), "leave");
  }

  /** Ends the lease and keeps others out for forMs from now; its grant expires then. */
  leave(forMs: number): Promise<"released" | "gone"> {
    if (!this.held && !this.isStillOurs) return this.release();
    // The holder has finished, so the lease cannot be lost any more, even if forMs ends before the
    // backend answers.
    this.#isEnding = true;
    this.#released = this.#leave(forMs);
    return this.#released;
  }

  /**
   * After a loss: does not release the grant, because the holder has not stopped. The grant ends
   * with its ttl.
   */
  letExpire(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#released = Promise.resolve("gone");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.releaseInTime({ during: "dispose" });
  }

  /**
   * Releases at the end of a run or a block. A backend that hangs must not keep the result of the
   * holder's work for longer than one call may take: null then, and the release is repeated in the
   * background. close() waits for it. Never rejects: a failure is an event.
   */
  releaseInTime({ during }: Pick<Events["failed"], "during">): Promise<"released" | "gone" | null> {
    return this.#inTime(this.release(), during);
  }

  // Anybody who knows the grantId can release the grant, so console.log(lease) must not show it.
  [inspect.custom]() {
    return `Lease ${inspect({ ...this.subject(), held: this.held })}`;
  }

  toJSON() {
    return { ...this.subject(), token: String(this.token), held: this.held };
  }

  /** endedAtBackend: no time is left to finish in, because a successor may be at work already. */
  lose(reason: LossReason, endedAtBackend: boolean): void {
    if (this.#lost !== null || this.#isEnding) return;
    const leftMs = this.grant.group.validUntil - this.#direct.clock.now();
    const remainingMs = endedAtBackend ? 0 : Math.max(0, leftMs);
    this.#lost = new LeaseLostError(this.resource, this.token, reason, remainingMs);
    this.#controller.onLost(this);
    emit("lost", () => ({ ...this.subject(), reason, heldMs: this.heldMs() }));
    this.#aborter?.abort(this.#lost);
  }

  subject() {
    return { resource: this.resource, mode: this.mode, label: this.label, token: this.token };
  }

  heldMs(): number {
    return this.#direct.clock.now() - this.acquiredAt;
  }

  /** Reads the clock, because timers may be late. Returns whether the lease is lost. */
  checkLoss(now = this.#direct.clock.now()): boolean {
    if (this.#lost !== null) return true;
    if (now < this.grant.group.lostAt) return false;
    const overTime = now >= this.holdUntil;
    this.lose(overTime ? "max-hold" : this.terms.renew ? "unconfirmed" : "expired", false);
    return true;
  }

  async #leave(forMs: number): Promise<"released" | "gone"> {
    try {
      return await this.#direct.letExpire(this, forMs);
    } catch (error) {
      // The ttl keeps others out for longer than was asked for, never for less.
      emit("failed", () => ({ during: "leave", error, resource: this.resource }));
      return "released";
    }
  }

  #inTime<T>(ending: Promise<T>, during: string): Promise<T | null> {
    return new Promise((resolve) => {
      const { clock } = this.#direct;
      const timer = clock.timer(this.terms.callTimeoutMs, () => resolve(null), true);
      const onFailure = (error: unknown) => {
        emit("failed", () => ({ during, error, resource: this.resource }));
        resolve(null);
      };
      ending.then(resolve, onFailure).finally(() => timer.cancel());
    });
  }

  #release(): Promise<"released" | "gone"> {
    if (this.#lost !== null) {
      this.#direct.releaseAfterLoss(this);
      emit("released", () => ({ ...this.subject(), heldMs: this.heldMs(), outcome: "gone" }));
      return Promise.resolve("gone");
    }
    const released = this.#controller.release(this);
    return channels.released.hasSubscribers ? this.#tellReleased(released) : released;
  }

  async #tellReleased(released: Promise<"released" | "gone">): Promise<"released" | "gone"> {
    const outcome = await released;
    emit("released", () => ({ ...this.subject(), heldMs: this.heldMs(), outcome }));
    return outcome;
  }
}
