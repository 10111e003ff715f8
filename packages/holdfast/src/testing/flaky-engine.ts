import type { Call, Engine, EngineTraits, Granted, GrantRef, QueueFacet } from "../engine.js";
import { EngineError } from "../errors.js";

export type Verb =
  | "tryAcquire"
  | "renew"
  | "release"
  | "check"
  | "revoke"
  | "inspect"
  | "list"
  | "enqueue"
  | "heartbeat"
  | "withdraw";

/** What happens to one call. */
export type Fault =
  /** The call never reaches the backend, and the engine knows: EngineError, effect none. */
  | { readonly kind: "fail"; readonly error?: Error }
  /** The call is carried out and its answer is lost: EngineError, effect unknown. */
  | { readonly kind: "lose-reply"; readonly error?: Error }
  /** The call never settles; carriedOut says whether the backend saw it. */
  | { readonly kind: "hang"; readonly carriedOut: boolean }
  /** The call reaches the backend only after `until`: a delayed packet. */
  | { readonly kind: "hold-request"; readonly until: Promise<unknown> }
  /** The call is carried out at once, and answered after `until`. */
  | { readonly kind: "hold-reply"; readonly until: Promise<unknown> }
  /**
   * The call is answered as usual, and carried out once more after `until`: a client that resends.
   */
  | { readonly kind: "replay"; readonly until: Promise<unknown> };

/** An engine that works normally until a test injects faults. */
export interface FlakyEngine extends Engine {
  /** The next calls of this verb meet the fault, one after the other; later calls work normally. */
  inject(verb: Verb, fault: Fault, times?: number): void;
  /** Every call fails until the returned function is called: a connection that is cut. */
  cut(effect?: "none" | "unknown"): () => void;
  /** drop: no push arrives. A promise: pushes arrive after it resolves. deliver: as usual. */
  pushes(how: "deliver" | "drop" | Promise<unknown>): void;
  /** How many calls of the verb were made so far, including failed ones. */
  calls(verb: Verb): number;
}

/** Wraps an engine so that a test can make chosen calls fail, hang, come late or come twice. */
export function flakyEngine(inner: Engine): FlakyEngine {
  return new Flaky(inner);
}

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

class Flaky implements FlakyEngine {
  readonly name: string;
  readonly traits: EngineTraits;
  readonly queue?: QueueFacet;
  readonly #inner: Engine;
  readonly #faults = new Map<Verb, Fault[]>();
  readonly #counts = new Map<Verb, number>();
  #cut: "none" | "unknown" | null = null;
  #pushes: "deliver" | "drop" | Promise<unknown> = "deliver";

  constructor(inner: Engine) {
    this.#inner = inner;
    this.name = inner.name;
    this.traits = inner.traits;
    if (inner.queue) this.queue = this.#queue(inner.queue);
    if (inner.watch) this.watch = inner.watch;
  }

  readonly watch?: NonNullable<Engine["watch"]>;

  readonly tryAcquire: Engine["tryAcquire"] = (claim, call) =>
    this.#through("tryAcquire", () => this.#inner.tryAcquire(claim, call));
  readonly renew: Engine["renew"] = (grants, call) =>
    this.#through("renew", () => this.#inner.renew(grants, call));
  readonly release: Engine["release"] = (grants, call) =>
    this.#through("release", () => this.#inner.release(grants, call));
  readonly check: Engine["check"] = (sequence, call) =>
    this.#through("check", () => this.#inner.check(sequence, call));
  readonly revoke: Engine["revoke"] = (sequence, call) =>
    this.#through("revoke", () => this.#inner.revoke(sequence, call));
  readonly inspect: Engine["inspect"] = (resource, call) =>
    this.#through("inspect", () => this.#inner.inspect(resource, call));
  readonly list: Engine["list"] = (filter, call) =>
    this.#through("list", () => this.#inner.list(filter, call));

  close(): Promise<void> {
    return this.#inner.close();
  }

  inject(verb: Verb, fault: Fault, times = 1): void {
    const faults = this.#faults.get(verb) ?? [];
    for (let i = 0; i < times; i++) faults.push(fault);
    this.#faults.set(verb, faults);
  }

  cut(effect: "none" | "unknown" = "none"): () => void {
    this.#cut = effect;
    return () => {
      this.#cut = null;
    };
  }

  pushes(how: "deliver" | "drop" | Promise<unknown>): void {
    this.#pushes = how;
  }

  calls(verb: Verb): number {
    return this.#counts.get(verb) ?? 0;
  }

  async #through<T>(verb: Verb, carryOut: () => Promise<T>): Promise<T> {
    this.#counts.set(verb, this.calls(verb) + 1);
    if (this.#cut !== null) throw lost(verb, this.#cut);
    const fault = this.#faults.get(verb)?.shift();
    switch (fault?.kind) {
      case undefined:
        return carryOut();
      case "fail":
        throw fault.error ?? lost(verb, "none");
      case "lose-reply":
        await carryOut();
        throw fault.error ?? lost(verb, "unknown");
      case "hang":
        if (fault.carriedOut) await carryOut();
        return new Promise<never>(() => {});
      case "hold-request":
        await fault.until;
        return carryOut();
      case "hold-reply": {
        const answer = await carryOut();
        await fault.until;
        return answer;
      }
      case "replay":
        // Nobody reads the answer to the second call.
        void fault.until.then(carryOut).catch(() => {});
        return carryOut();
    }
  }

  #queue(inner: QueueFacet): QueueFacet {
    return {
      enqueue: (claim, call: Call) => this.#through("enqueue", () => inner.enqueue(claim, call)),
      heartbeat: (waiters, call) =>
        this.#through("heartbeat", () => inner.heartbeat(waiters, call)),
      withdraw: (waiter, call) => this.#through("withdraw", () => inner.withdraw(waiter, call)),
      onGrant: (listener) => inner.onGrant((ref, granted) => this.#push(listener, ref, granted)),
    };
  }

  #push(listener: GrantListener, ref: GrantRef, granted: Granted): void {
    if (this.#pushes === "drop" || this.#cut !== null) return;
    if (this.#pushes === "deliver") listener(ref, granted);
    else void this.#pushes.then(() => listener(ref, granted));
  }
}

function lost(verb: Verb, effect: "none" | "unknown"): EngineError {
  const what = effect === "none" ? "was never sent" : "was sent, and its answer was lost";
  return new EngineError(`flaky engine: ${verb} ${what}`, { effect, retryable: true });
}
