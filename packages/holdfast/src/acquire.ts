import type { Backend } from "./backend.js";
import type { Timer } from "./clock.js";
import type { Busy, Gone, Granted, HolderView, Queued, Withdrawn } from "./engine.js";
import { AcquireTimeoutError, EngineError, inDoubt } from "./errors.js";
import { CERTAIN, Grant } from "./grant.js";
import { mintGrantId } from "./grant-id.js";
import { Changes, ownPace } from "./look-again.js";
import { type Asker, OpenClaim, type Step } from "./open-claim.js";
import type { Terms } from "./options.js";
import type { Outcome, Place, Pulse, Waiter } from "./pulse.js";
import { type RetryStrategy, RetryWalk } from "./retry.js";

/** What a claim needs to know of its surroundings. */
export interface Arena {
  readonly backend: Backend;
  /** Null when the engine keeps no line; then the claim looks again by itself. */
  readonly pulse: Pulse | null;
  readonly drift: number;
}

export interface Wish {
  readonly resource: string;
  readonly terms: Terms;
  readonly tokens: number;
  readonly startedAt: number;
  readonly waitMs: number;
  /** What to do about errors; where the engine keeps no line, also how often to look again. */
  readonly retry: RetryStrategy | undefined;
  /** How often to look again where the engine keeps no line; else the core's own pace. */
  readonly looks?: RetryStrategy | undefined;
}

/** Who is told what becomes of a claim. */
export interface Claimant {
  /** One of these two is called, once. */
  granted(grant: Grant, now: number): void;
  failed(error: unknown, claim: Contention): void;
  /** Told whom the claim waits for, whenever that is learned. */
  heard(holders: readonly HolderView[]): void;
}

const LEAST_LOOK_MS = 5;
/** When patience is spent, an answer that is on its way is waited for so long at most. */
export const LAST_WORD_MS = 50;

/**
 * One claim, from the first call until it is granted, out of patience, aborted or failed. Whatever
 * the end, nothing stays behind: no waiter, no grant, no timer, no listener.
 *
 * It calls back instead of awaiting: nearly every claim is granted by its first answer, and a chain
 * of promises would cost more than all the rest of it.
 */
export class Contention implements Asker, Waiter {
  static readonly #TRY: Step<Contention, Granted | Busy | Gone> = {
    ask: (claim, call) => claim.#backend.engine.tryAcquire(claim.#open.claim, call),
    answered: (claim, answer) => claim.#tried(answer),
    failed: (claim, error) => claim.#rideOut(error),
  };

  static readonly #STAND_IN_LINE: Step<Contention, Granted | Queued | Gone> = {
    ask: (claim, call) => claim.#backend.engine.queue!.enqueue(claim.#open.claim, call),
    answered: (claim, answer, startedAt) => claim.#stoodInLine(answer, startedAt),
    failed: (claim, error) => {
      claim.#leaveLine();
      claim.#rideOut(error);
    },
  };

  /** Outside the line: no push that is still on its way can be taken for the answer. */
  static readonly #CLAIM_AGAIN: Step<Contention, Granted | Busy | Gone> = {
    ask: (claim, call) => claim.#backend.engine.tryAcquire(claim.#open.claim, call),
    answered: (claim, answer) =>
      answer.kind === "granted" ? claim.#accept(answer) : claim.#startOver(),
    failed: (claim) => claim.#startOver(),
  };

  readonly #arena: Arena;
  readonly #wish: Wish;
  readonly #claimant: Claimant;
  readonly #backend: Backend;
  #errors: RetryWalk | null = null;
  #looks: RetryWalk | null = null;
  #changes: Changes | null = null;
  #open: OpenClaim;
  /** Whether the backend has said anything, and is heard still. */
  #answered = false;
  #failure: unknown = null;
  /** Whom it waits for, as far as it was ever heard. */
  #holders: readonly HolderView[] = [];
  /** The claim whose grant came too late, and was asked for once more. */
  #claimedAgain: OpenClaim | null = null;
  #unknownInARow = 0;
  #retryAfterMs = Infinity;
  /** The number of the question under way: what answers an earlier one comes too late. */
  #question = 0;
  #place: Place | null = null;
  #patience: Timer | null = null;
  #resting: Timer | null = null;
  #over = false;

  constructor(arena: Arena, wish: Wish, claimant: Claimant) {
    this.#arena = arena;
    this.#wish = wish;
    this.#claimant = claimant;
    this.#backend = arena.backend;
    this.#open = this.#newClaim();
  }

  start(): void {
    // close() must not take the engine away before this has cleaned up behind itself.
    this.#backend.began();
    const { waitMs } = this.#wish;
    // Who does not wait at all is answered by its one call, or told by that call's own limit.
    if (waitMs > 0 && waitMs < Infinity) {
      this.#patience = this.#backend.clock.timer(this.#leftMs(), () => this.#late(), true);
    }
    this.#ask();
  }

  /** Whether the backend left the last heartbeat unanswered: who holds it now, nobody knows. */
  get isUnheard(): boolean {
    return this.#place !== null && this.#place.failures > 0;
  }

  /** What the last request failed with, if none was answered since. One that was sent since may have an effect. */
  get failure(): unknown {
    return this.#open.exists ? inDoubt(this.#failure) : this.#failure;
  }

  /** Whom it waits for, as of the last heartbeat; undefined while it stands in no line. */
  get holders(): readonly HolderView[] | undefined {
    return this.#place?.holders;
  }

  abort(reason: unknown): void {
    if (!this.#over) this.#fail(reason);
  }

  #ask(): void {
    const { pulse } = this.#arena;
    if (pulse !== null && this.#wish.waitMs > 0) this.#standInLine(pulse);
    else this.#tryOnce();
  }

  #tryOnce(): void {
    // What was announced until now, this look will see for itself.
    if (this.#wish.waitMs > 0) this.#heardChanges().seen = false;
    this.#send(Contention.#TRY);
  }

  #tried(answer: Granted | Busy | Gone): void {
    this.#noteAnswer();
    if (answer.kind === "granted") this.#accept(answer);
    else if (answer.kind === "gone") this.#forgotten();
    else {
      this.#retryAfterMs = answer.retryAfterMs ?? Infinity;
      this.#busy(answer);
    }
  }

  #standInLine(pulse: Pulse): void {
    // Before the claim is sent: a push may overtake the answer.
    this.#place = pulse.enrol(this.#open.claim, this);
    this.#send(Contention.#STAND_IN_LINE);
  }

  #stoodInLine(answer: Granted | Queued | Gone, startedAt: number): void {
    this.#noteAnswer();
    if (answer.kind === "queued") {
      this.#arena.pulse!.queued(this.#place!, answer, startedAt);
      this.#heard(answer.holders);
      return;
    }
    this.#leaveLine();
    if (answer.kind === "granted") this.#accept(answer);
    else this.#forgotten();
  }

  /** What the pulse learned of our place, by a push or a heartbeat. */
  called(outcome: Outcome): void {
    this.#leaveLine();
    this.#question++;
    this.#noteAnswer();
    try {
      if (outcome === "unknown") this.#forgotten();
      else this.#accept(outcome);
    } catch (error) {
      this.threw(error);
    }
  }

  /**
   * Patience is spent, but the grant may have come first: then it is ours, and good. Whoever stands in
   * line asks for it; others have asked, or do so now. But no answer is worth more than a moment.
   */
  #late(): void {
    const giveUp = () => this.#fail(this.#outOfPatience());
    this.#patience = this.#backend.clock.timer(LAST_WORD_MS, giveUp, true);
    if (this.#place === null) return;
    const { holders, failures } = this.#place;
    this.#holders = holders;
    // Who held it when heartbeats were last answered, nobody knows to hold it now.
    if (failures > 0) this.#answered = false;
    // An enqueue without an answer may be carried out after the withdrawal, and be answered before it.
    const overtaken = this.#open.exists;
    this.#leaveLine();
    const withdraw: Step<Contention, Withdrawn | Granted> = {
      ask: (_, call) => this.#backend.engine.queue!.withdraw(this.#open.claim, call),
      answered: (_, answer) => {
        this.#noteAnswer();
        if (answer.kind === "granted") {
          this.#accept(answer);
          return;
        }
        // What is still on its way, a tombstone awaits; what has arrived is released.
        this.#open.exposed = overtaken;
        this.#fail(this.#outOfPatience());
      },
      failed: (_, error) => this.#fail(failures > 0 ? error : this.#outOfPatience()),
    };
    this.#send(withdraw);
  }

  #send<T>(step: Step<Contention, T>): void {
    this.#open.send(this, ++this.#question, step);
  }

  awaits(question: number): boolean {
    return !this.#over && question === this.#question;
  }

  /** What strategies and engines throw ends the claim; what its end throws is nobody's but ours. */
  threw(error: unknown): void {
    if (this.#over) throw error;
    this.#fail(error);
  }

  /**
   * A grant may come so late that its lease would be lost on arrival: the belief in a pushed one counts
   * from the last heartbeat, which may be longer ago than a short ttl lasts. The backend may have it
   * still, and gives it a fresh ttl when the same claim is repeated. A new claim would lose its place.
   */
  #accept(granted: Granted): void {
    const open = this.#open;
    // A million grants that are held need not each remember how they were asked for.
    const doubt = open.exists ? open : CERTAIN;
    const grant = new Grant(open.claim, granted, this.#arena.drift, doubt);
    const now = this.#backend.clock.now();
    if (grant.isGoodFor(this.#wish.terms.graceMs, now)) {
      this.#backend.checkToken(grant);
      this.#end();
      this.#claimant.granted(grant, now);
      return;
    }
    this.#heard([]);
    if (this.#over) return;
    if (this.#leftMs() <= 0) {
      this.#fail(this.#outOfPatience());
      return;
    }
    if (this.#claimedAgain === this.#open) {
      this.#startOver();
      return;
    }
    this.#claimedAgain = this.#open;
    this.#send(Contention.#CLAIM_AGAIN);
  }

  #startOver(): void {
    this.#open.giveUp();
    this.#open = this.#newClaim();
    this.#ask();
  }

  /** The backend knows no such waiter any more, or keeps for it a grant that was revoked unseen. */
  #forgotten(): void {
    // A request that is still on its way would make a waiter of a claim that nobody knows, and a
    // revoked grant would keep its own claimant out for a whole ttl.
    this.#open.giveUp();
    this.#open = this.#newClaim();
    this.#heard([]);
    if (this.#over) return;
    if (this.#leftMs() <= 0) {
      this.#fail(this.#outOfPatience());
      return;
    }
    // Once is a place that was lost. Again and again is a backend that must not be hammered.
    if (this.#unknownInARow++ > 0) this.#lookAgainLater();
    else this.#ask();
  }

  #busy({ holders, remembered = false }: Busy): void {
    // A request before this one may still be on its way.
    this.#open.exposed = this.#open.exists || remembered;
    this.#unknownInARow = 0;
    this.#heard(holders);
    if (this.#over) return;
    if (this.#leftMs() <= 0) {
      this.#fail(this.#outOfPatience());
      return;
    }
    this.#lookAgainLater();
  }

  #noteAnswer(): void {
    this.#answered = true;
    this.#failure = null;
  }

  #heard(holders: readonly HolderView[]): void {
    this.#holders = holders;
    this.#claimant.heard(holders);
  }

  /** The engine keeps no line: look again when it says that something changed, or after a while. */
  #lookAgainLater(): void {
    const { retry, looks } = this.#wish;
    this.#looks ??=
      retry === undefined ? new RetryWalk(looks ?? ownPace(this.#backend)) : this.#errorWalk();
    const delayMs = this.#looks.next(undefined);
    if (delayMs === null) {
      this.#fail(this.#outOfPatience());
      return;
    }
    const changes = this.#heardChanges();
    const again = this.#rest(Math.min(delayMs, Math.max(this.#retryAfterMs, LEAST_LOOK_MS)));
    changes.onChange = again;
    if (changes.seen) again();
  }

  #heardChanges(): Changes {
    this.#changes ??= new Changes(this.#backend, this.#wish.resource);
    return this.#changes;
  }

  #rideOut(error: unknown): void {
    this.#failure = error;
    const retry = error instanceof EngineError && error.retryable && this.#leftMs() > 0;
    const delayMs = retry ? this.#errorWalk().next(error) : null;
    if (delayMs === null) {
      this.#fail(this.failure);
      return;
    }
    // The same grantId again: if the lost request did arrive, the repeat finds its place in line.
    this.#rest(delayMs);
  }

  #errorWalk(): RetryWalk {
    this.#errors ??= new RetryWalk(this.#wish.retry);
    return this.#errors;
  }

  /** Asks again after so long, or when what is returned is called. */
  #rest(delayMs: number): () => void {
    const again = () => {
      if (this.#resting !== timer) return;
      this.#stopResting();
      // Not within the engine's own call: who tells of a change may not be done with it.
      queueMicrotask(() => this.#askAgain());
    };
    const timer = this.#backend.clock.timer(Math.min(delayMs, this.#leftMs()), again, true);
    this.#resting = timer;
    return again;
  }

  #stopResting(): void {
    this.#resting?.cancel();
    this.#resting = null;
  }

  #askAgain(): void {
    if (this.#over) return;
    try {
      this.#ask();
    } catch (error) {
      this.threw(error);
    }
  }

  #fail(error: unknown): void {
    this.#open.giveUp();
    this.#end();
    this.#claimant.failed(error, this);
  }

  #end(): void {
    this.#over = true;
    this.#patience?.cancel();
    this.#leaveLine();
    this.#stopResting();
    this.#errors?.end();
    this.#looks?.end();
    this.#changes?.end();
    this.#backend.ended();
  }

  #leaveLine(): void {
    if (this.#place === null) return;
    this.#arena.pulse?.leave(this.#place);
    this.#place = null;
  }

  #leftMs(): number {
    const { startedAt, waitMs } = this.#wish;
    return waitMs === Infinity ? Infinity : startedAt + waitMs - this.#backend.clock.now();
  }

  /** Silence is not busy: who does not hear from the backend is told that, and not a guess. */
  #outOfPatience(): unknown {
    if (this.#failure !== null) return this.failure;
    const waitedMs = this.#backend.clock.now() - this.#wish.startedAt;
    if (!this.#answered) return this.#backend.silence(waitedMs);
    return new AcquireTimeoutError(this.#wish.resource, waitedMs, this.#holders);
  }

  #newClaim(): OpenClaim {
    const { resource, terms, tokens } = this.#wish;
    const { mode, limit, ttlMs, lockDelayMs, label } = terms;
    const grantId = mintGrantId();
    const claim = { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label };
    return new OpenClaim(this.#backend, claim, terms.callTimeoutMs);
  }
}
