import type { Engine, EngineTraits } from "../engine.js";

type MaybePromise<T> = T | Promise<T>;

/**
 * How the suite reaches one backend. Optional members are what not every backend can offer. Members
 * that are no functions are read before a law runs, so before the backend was started.
 */
export interface Harness {
  readonly name: string;
  /** Opens an independent client on the same backend, as another process would have it. */
  open(): MaybePromise<Engine>;
  /** Empties the backend. Called before each law, with nothing open. */
  reset(): MaybePromise<void>;
  /**
   * Lets time pass for one resource at the backend: its grants and its lock-delays end ms earlier.
   * Without it the laws wait in real time. A backend that counts in steps rounds ms up, and leaves
   * out the time that the engine adds to a ttl: after ms of its ttl, a grant is over.
   */
  age?(resource: string, ms: number): MaybePromise<void>;
  /** Lets the tombstones of one resource, or all tombstones, end ms earlier. */
  ageTombstones?(resource: string, ms: number): MaybePromise<void>;
  /** Cuts this engine off from its backend. The returned function reconnects them. */
  sever?(engine: Engine): MaybePromise<() => MaybePromise<void>>;
  /** Stops the backend like a crash, and starts it again. */
  restart?(): MaybePromise<void>;
  /**
   * All grants of one resource that keep others out now, read from the backend's own record and not
   * through an engine. Belief must never be more (L19).
   */
  truth?(resource: string): MaybePromise<readonly TrueGrant[]>;
  /** Makes the waiters of a resource appear silent for ms longer than they were. */
  silence?(resource: string, ms: number): MaybePromise<void>;
  /** Opens an independent client whose requests can be delayed on their way (L21). */
  relayed?(): MaybePromise<Relayed>;
  /** Opens an independent client whose backend can be made to answer in a wrong shape (L20). */
  misanswered?(): MaybePromise<Misanswered>;
  /** For a backend with several servers that works on without one of them (L22). */
  readonly survival?: Survival;
  /** The processor time that the backend's servers have used so far, in microseconds (L23). */
  serverTimeUs?(): MaybePromise<number>;
  /**
   * The URL by which `connect` in a child process reaches the same backend. Before the backend was
   * started, any URL of its scheme.
   */
  readonly url?: string;
  /** The engine's traits; the default offers everything. L0.1 compares. */
  readonly traits?: EngineTraits;
  /** Whether the engine has a queue; default true. L0.1 compares. */
  readonly queue?: boolean;
  /** Whether the engine has a watch; default true. L0.1 compares. */
  readonly watch?: boolean;
  readonly excuses?: readonly Excuse[];
}

export interface TrueGrant {
  /** The first of its tokens. */
  readonly token: bigint;
  /**
   * Time until the backend lets others in by itself, without lock-delay. Rounded up if necessary.
   */
  readonly remainingMs: number;
}

export interface Relayed {
  readonly engine: Engine;
  /** From now on nothing that the client sends arrives. Answers to earlier requests still come. */
  hold(): MaybePromise<void>;
  /** Delivers the delayed requests now, in order, even if their sender has given up. */
  deliver(): MaybePromise<void>;
}

export interface Misanswered {
  readonly engine: Engine;
  /** The shapes of wrong answers in this protocol: a string for a list, a short list, … */
  readonly shapes: readonly string[];
  /** Every answer has this shape from now on; null: answers are right again. */
  answerWith(shape: string | null): void;
}

export interface Survival {
  /** A lease with this ttl outlives the loss of one server: an election takes less time. */
  readonly ttlMs: number;
  /** How long a server hangs; by default longer than the ttl. */
  readonly hangMs?: number;
  readonly members: readonly Member[];
}

/** One of several servers. */
export interface Member {
  readonly name: string;
  /** The server stops answering, and closes no connection. */
  hang(): MaybePromise<void>;
  /** The server continues as if nothing had happened. Resolves when it takes part again. */
  resume(): MaybePromise<void>;
  /** Kills the server and starts it again. Resolves when it takes part again. */
  restart(): MaybePromise<void>;
}

/** A law that a backend cannot keep, and the proof of that. */
export interface Excuse {
  /** "L13.2", or "L13" for all of them. */
  readonly law: string;
  readonly why: string;
  /** A deterministic schedule that fails with an AssertionError. One that passes fails the suite. */
  witness(harness: Harness): Promise<void>;
}

/** What a law needs from the harness or the engine. */
export type Need =
  | "age"
  | "tombstones"
  | "sever"
  | "restart"
  | "url"
  | "queue"
  | "watch"
  | "shared"
  | "limits"
  | "lockDelay"
  | "range"
  | "leave"
  | "ttl"
  | "truth"
  | "silence"
  | "relay"
  | "misanswer"
  | "survival"
  | "serverTime";

export interface Law {
  /** "L3.2". */
  readonly id: string;
  readonly title: string;
  readonly needs: readonly Need[];
  run(harness: Harness): Promise<void>;
}

export interface LawGroup {
  /** "L3". */
  readonly id: string;
  readonly name: string;
  /** The text of the law, for the page that engine authors read. */
  readonly text: string;
  readonly laws: readonly Law[];
}

const FULL_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 1, maxMs: 86_400_000, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "process",
  tokenRange: 1024,
  leaves: true,
};

export function traitsOf(harness: Harness): EngineTraits {
  return harness.traits ?? FULL_TRAITS;
}

const LACKS: Record<Need, (harness: Harness) => string | null> = {
  age: (h) => (h.age ? null : "the harness cannot age records"),
  tombstones: (h) => (h.ageTombstones ? null : "the harness cannot age tombstones"),
  sever: (h) => (h.sever ? null : "the harness cannot cut the connection"),
  restart: (h) =>
    !h.restart
      ? "the harness cannot restart the backend"
      : traitsOf(h).fencing === "process"
        ? "the engine promises nothing across restarts"
        : null,
  url: (h) => (h.url === undefined ? "no other process can reach this backend" : null),
  queue: (h) => (h.queue === false ? "the engine keeps no queue" : null),
  watch: (h) => (h.watch === false ? "the engine cannot report changes" : null),
  shared: (h) => (traitsOf(h).modes.includes("shared") ? null : "the engine has no shared mode"),
  limits: (h) => (traitsOf(h).limits ? null : "the engine has no limits on shared claims"),
  lockDelay: (h) => (traitsOf(h).lockDelay ? null : "the engine has no lock-delay"),
  leave: (h) => (traitsOf(h).leaves ? null : "its grants end with the process"),
  ttl: (h) => (traitsOf(h).expiry === "ttl" ? null : "grants live as long as one client's session"),
  truth: (h) => (h.truth ? null : "the harness cannot read the backend's record"),
  silence: (h) => (h.silence ? null : "the harness cannot make waiters seem silent"),
  relay: (h) => (h.relayed ? null : "the harness has no relay"),
  misanswer: (h) => (h.misanswered ? null : "no answer crosses a wire that could garble it"),
  survival: (h) => (h.survival ? null : "the harness cannot disturb a single server"),
  serverTime: (h) => (h.serverTimeUs ? null : "the harness cannot measure the backend's work"),
  range: (h) => (traitsOf(h).tokenRange >= 2 ? null : "the engine reserves no token ranges"),
};

/** Why this law does not apply to the harness; null when it applies. */
export function inapplicable(law: Law, harness: Harness): string | null {
  for (const need of law.needs) {
    const reason = LACKS[need](harness);
    if (reason !== null) return reason;
  }
  return null;
}
