import type { Backend } from "./backend.js";
import type { Cancellation } from "./canceller.js";
import { sleep } from "./clock.js";
import type { Call, Claim, Granted, HolderView } from "./engine.js";
import { AcquireTimeoutError, EngineError, HoldfastError, UsageError } from "./errors.js";
import { Doubt, Grant } from "./grant.js";
import { mintGrantId } from "./grant-id.js";
import { Changes, ownPace } from "./look-again.js";
import type { Terms } from "./options.js";
import type { Place, Pulse } from "./pulse.js";
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
  /** Ends the waiting. */
  readonly signal: Cancellation | undefined;
  /** How often to look again where the engine keeps no line; else the core's own pace. */
  readonly looks?: RetryStrategy | undefined;
  /** Told whom the claim waits for, whenever that is learned. */
  readonly onHolders?: (holders: readonly HolderView[]) => void;
}

/**
 * One claim, from the first call until it is granted, out of patience, aborted or failed. Whatever
 * the end, nothing stays behind: no waiter, no grant, no timer, no listener.
 */
export function contend(arena: Arena, wish: Wish): Promise<Grant> {
  const work = runContention(new Contention(arena, wish));
  // close() must not take the engine away before this has cleaned up behind itself.
  arena.backend.track(work);
  return work;
}

async function runContention(contention: Contention): Promise<Grant> {
  try {
    return await contention.run();
  } catch (error) {
    contention.giveUp();
    throw error;
  } finally {
    contention.end();
  }
}

const LEAST_LOOK_MS = 5;

type Answer = Granted | "unknown" | readonly HolderView[];

class Contention {
  readonly #arena: Arena;
  readonly #wish: Wish;
  readonly #backend: Backend;
  readonly #errors: RetryWalk;
  readonly #looks: RetryWalk;
  #claim: Claim;
  #doubt = new Doubt();
  // Whether the backend may know of the claim.
  #exposed = false;
  #answered = false;
  #unknownInARow = 0;
  #retryAfterMs = Infinity;
  #changes: Changes | null = null;

  constructor(arena: Arena, wish: Wish) {
    this.#arena = arena;
    this.#wish = wish;
    this.#backend = arena.backend;
    this.#errors = new RetryWalk(wish.terms.retry);
    const pace = wish.looks ?? ownPace(arena.backend);
    this.#looks = wish.terms.retry === undefined ? new RetryWalk(pace) : this.#errors;
    this.#claim = this.#newClaim();
  }

  async run(): Promise<Grant> {
    for (;;) {
      if (this.#wish.signal?.aborted) throw this.#wish.signal.reason;
      const answer = await this.#askOnce();
      if (answer === null) continue;
      if (answer === "unknown") {
        this.#claim = this.#newClaim();
        this.#wish.onHolders?.([]);
        if (this.#leftMs() <= 0) throw this.#outOfPatience([]);
        // Once is a place that was lost. Again and again is a backend that must not be hammered.
        if (this.#unknownInARow++ > 0) await this.#lookAgainLater([]);
      } else if ("kind" in answer) {
        const grant = this.#accept(answer);
        if (grant !== null) return grant;
      } else {
        this.#exposed = false;
        this.#unknownInARow = 0;
        this.#wish.onHolders?.(answer);
        if (this.#leftMs() <= 0) throw this.#outOfPatience(answer);
        await this.#lookAgainLater(answer);
      }
    }
  }

  /** The grant may exist although nobody will use it: it must not block others for a whole ttl. */
  giveUp(): void {
    if (!this.#exposed) return;
    this.#exposed = false;
    this.#backend.abandon(this.#claim, this.#doubt.exists, this.#wish.terms.callTimeoutMs);
  }

  end(): void {
    this.#errors.end();
    this.#looks.end();
    this.#changes?.end();
  }

  /** Null after an error that the retry strategy rode out. */
  async #askOnce(): Promise<Answer | null> {
    const inLine = this.#arena.pulse !== null && this.#wish.waitMs > 0;
    try {
      return inLine ? await this.#standInLine(this.#arena.pulse) : await this.#tryOnce();
    } catch (error) {
      if (this.#wish.signal?.aborted) throw this.#wish.signal.reason;
      const retry = error instanceof EngineError && error.retryable && this.#leftMs() > 0;
      const delayMs = retry ? this.#errors.next(error) : null;
      if (delayMs === null) throw error;
      // The same grantId again: if the lost request did arrive, the repeat finds its place in line.
      await sleep(this.#backend.clock, Math.min(delayMs, this.#leftMs()), this.#wish.signal);
      return null;
    }
  }

  async #tryOnce(): Promise<Answer> {
    const { engine } = this.#backend;
    if (this.#wish.waitMs > 0) this.#listen().forget();
    const answer = await this.#untilAborted(
      this.#send((call) => engine.tryAcquire(this.#claim, call)),
    );
    if (answer.kind === "gone") return "unknown";
    if (answer.kind === "granted") return answer;
    this.#retryAfterMs = answer.retryAfterMs ?? Infinity;
    return answer.holders;
  }

  async #standInLine(pulse: Pulse): Promise<Answer> {
    const wish = this.#wish;
    const { clock, engine } = this.#backend;
    const place = pulse.enrol(this.#claim);
    const late = () => place.settle("late");
    const timer = this.#leftMs() === Infinity ? null : clock.timer(this.#leftMs(), late, true);
    const onAbort = () => place.settle("aborted");
    wish.signal?.addEventListener("abort", onAbort, { once: true });
    try {
      let startedAt = 0;
      const asked = this.#send((call) => {
        startedAt = call.startedAt;
        return engine.queue!.enqueue(this.#claim, call);
      });
      const first = await Promise.race([asked, place.outcome]);
      if (typeof first === "object") {
        if (first.kind === "granted") return first;
        if (first.kind === "gone") return "unknown";
        place.holders = first.holders;
        wish.onHolders?.(first.holders);
        pulse.queued(place, first, startedAt);
      }
      const outcome = await place.outcome;
      if (outcome === "aborted") throw wish.signal?.reason;
      if (outcome === "late") return await this.#withdraw(place);
      this.#answered = true;
      return outcome;
    } finally {
      pulse.leave(place);
      timer?.cancel();
      wish.signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Patience is spent, but the grant may have come first: then it is ours, and good. */
  async #withdraw(place: Place): Promise<Granted> {
    const { engine } = this.#backend;
    try {
      const answer = await this.#untilAborted(
        this.#send((call) => engine.queue!.withdraw(this.#claim, call)),
      );
      if (answer.kind === "granted") return answer;
      // An enqueue that was never answered may still be on its way; a tombstone awaits it.
      this.#exposed = this.#doubt.exists;
    } catch (error) {
      // Who held it when heartbeats were last answered, nobody knows to hold it now.
      if (this.#wish.signal?.aborted || place.failures > 0) throw error;
    }
    this.giveUp();
    throw this.#outOfPatience(place.holders);
  }

  /**
   * Every request leaves through here, so that what the backend may know is always right. A call may
   * have to wait for the event loop to turn; one that was aborted meanwhile is not sent at all.
   */
  async #send<T>(ask: (call: Call) => Promise<T>): Promise<T> {
    const doubt = this.#doubt;
    const before = this.#exposed;
    let sent = false;
    try {
      const answer = await this.#backend.call(this.#wish.terms.callTimeoutMs, (call) => {
        if (this.#wish.signal?.aborted) throw this.#wish.signal.reason;
        this.#exposed = true;
        doubt.unanswered++;
        sent = true;
        return ask(call);
      });
      this.#answered = true;
      return answer;
    } catch (error) {
      if (sent && withoutEffect(error)) this.#exposed = before;
      else if (sent) doubt.lost = true;
      throw error;
    } finally {
      if (sent) doubt.unanswered--;
    }
  }

  #untilAborted<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#wish;
    if (signal === undefined) return work;
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
    });
  }

  /** Null for a grant that came so late that its lease would be lost on arrival. */
  #accept(granted: Granted): Grant | null {
    const grant = new Grant(this.#claim, granted, this.#arena.drift, this.#doubt);
    if (grant.isGoodFor(this.#wish.terms.graceMs, this.#backend.clock.now())) {
      this.#backend.checkToken(grant);
      return grant;
    }
    if (this.#leftMs() <= 0) throw this.#outOfPatience([]);
    this.giveUp();
    this.#claim = this.#newClaim();
    return null;
  }

  /** The engine keeps no line: look again when it says that something changed, or after a while. */
  async #lookAgainLater(holders: readonly HolderView[]): Promise<void> {
    const delayMs = this.#looks.next(undefined);
    if (delayMs === null) throw this.#outOfPatience(holders);
    const soonestMs = Math.min(delayMs, Math.max(this.#retryAfterMs, LEAST_LOOK_MS));
    await this.#listen().next(Math.min(soonestMs, this.#leftMs()), this.#wish.signal);
  }

  #listen(): Changes {
    this.#changes ??= new Changes(this.#backend, this.#wish.resource);
    return this.#changes;
  }

  #leftMs(): number {
    return this.#wish.startedAt + this.#wish.waitMs - this.#backend.clock.now();
  }

  /** Silence is not busy: who never heard from the backend is told that, and not a guess. */
  #outOfPatience(holders: readonly HolderView[]): HoldfastError {
    const waitedMs = this.#backend.clock.now() - this.#wish.startedAt;
    if (!this.#answered) return this.#backend.silence(waitedMs);
    return new AcquireTimeoutError(this.#wish.resource, waitedMs, holders);
  }

  #newClaim(): Claim {
    const { resource, terms, tokens } = this.#wish;
    const { mode, limit, ttlMs, lockDelayMs, label } = terms;
    this.#exposed = false;
    this.#doubt = new Doubt();
    const grantId = mintGrantId();
    return { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label };
  }
}

/** Errors that vouch for it that nothing changed at the backend. */
function withoutEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
