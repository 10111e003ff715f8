import type { RetryStrategy } from "./core/acquiring/retry.js";
import { type Advice, type Known, refuseUnknown } from "./core/input/known-options.js";
import { abortSignal, atLeast, oneOf, whole, wrong } from "./core/input/option-values.js";
import { type Clock, systemClock } from "./core/runtime/clock.js";
import { OWN_LABEL } from "./core/runtime/own-label.js";
import type { EngineTraits, Mode } from "./engine.js";
import { UnsupportedError, UsageError } from "./errors.js";

export interface AcquireOptions {
  /** How long the grant lives without a renewal. */
  readonly ttlMs?: number;
  /** How long to wait for the grant. To wait for ever, write `Infinity`. */
  readonly waitMs?: number;
  /** How long one call to the backend may take. */
  readonly callTimeoutMs?: number;
  /** Whether the keeper renews the lease until it is released. */
  readonly renew?: boolean;
  readonly renewEveryMs?: number;
  /** The lease is lost after this long in any case: a limit for what the keeper keeps alive. */
  readonly maxHoldMs?: number;
  /** A loss is reported this long before validity ends, so that work can stop in time. */
  readonly graceMs?: number;
  readonly mode?: Mode;
  /**
   * For shared mode: the most holders at once. All shared claims on one resource need the same
   * limit.
   */
  readonly limit?: number;
  /** After a loss, but not after a release, the resource stays closed for this long. */
  readonly lockDelayMs?: number;
  /** What others see when they ask who holds the resource. */
  readonly label?: string;
  /**
   * cohort: waiters of one process may hand a lease over to each other, within a budget. strict:
   * never.
   */
  readonly fair?: "cohort" | "strict";
  /** Inside `run`: joins the enclosing lease of the same resource instead of waiting for it. */
  readonly reentrant?: boolean;
  /** Delays after errors; on engines without a queue also between polls. */
  readonly retry?: RetryStrategy;
  /** Ends the waiting, not the holding. */
  readonly signal?: AbortSignal;
}

export type TryAcquireOptions = Omit<AcquireOptions, "waitMs" | "retry">;

export interface CohortBudget {
  /** How often one grant may be handed over inside the process, 0 … 1024. */
  readonly handOvers?: number;
  /** For how long one grant may be handed over. */
  readonly ms?: number;
}

export interface ConnectOptions {
  /** Defaults for every acquire of this connection. */
  readonly defaults?: Omit<AcquireOptions, "signal">;
  /** How much clock rates may differ; validity is shortened by this fraction. */
  readonly drift?: number;
  readonly cohort?: CohortBudget;
  /** For tests: a clock of your own. */
  readonly clock?: Clock;
}

export const ACQUIRE_DEFAULTS = {
  ttlMs: 30_000,
  waitMs: 30_000,
  callTimeoutMs: 5_000,
  renew: true,
  maxHoldMs: Infinity,
  mode: "exclusive",
  lockDelayMs: 0,
  fair: "cohort",
  reentrant: false,
} as const;

export const CONNECT_DEFAULTS = { drift: 0.01, handOvers: 256, handOverMs: 50 } as const;

const MAX_GRACE_MS = 1_000;
const MAX_LABEL = 256;
/** The options of every way to acquire. */
export const COMMON_OPTIONS = {
  ...({ ttlMs: true, callTimeoutMs: true, label: true, lockDelayMs: true } as const),
  ...({ renew: true, renewEveryMs: true, maxHoldMs: true, graceMs: true } as const),
  ...({ fair: true, reentrant: true } as const),
} as const;
const DEFAULTS: Known<Omit<AcquireOptions, "signal">> = {
  ...{ ...COMMON_OPTIONS, mode: true, limit: true, waitMs: true, retry: true },
};
const ACQUIRE: Known<AcquireOptions> = { ...DEFAULTS, signal: true };
const CONNECT: Known<ConnectOptions> = { defaults: true, drift: true, cohort: true, clock: true };
const COHORT: Known<CohortBudget> = { handOvers: true, ms: true };
/** Options of engines that are parameters of a URL too. */
const ENGINE_OPTIONS = ["prefix", "schema", "hold", "idleMs", "listen", "spin", "tls", "replicas"];
const DAY_MS = 86_400_000;

/** All options with their values decided: what the rest of the core works with. */
export interface Terms {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly callTimeoutMs: number;
  readonly renew: boolean;
  readonly renewEveryMs: number;
  readonly maxHoldMs: number;
  readonly graceMs: number;
  readonly mode: Mode;
  readonly limit: number | null;
  readonly lockDelayMs: number;
  readonly label: string;
  readonly fair: "cohort" | "strict";
  readonly reentrant: boolean;
  readonly retry: RetryStrategy | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface ConnectTerms {
  readonly defaults: AcquireOptions;
  readonly drift: number;
  readonly handOvers: number;
  readonly handOverMs: number;
  readonly clock: Clock;
}

/** url: whether the connection is made by a URL. */
export function resolveConnect(options: ConnectOptions, url = false): ConnectTerms {
  refuseUnknown(options, CONNECT, "connect", placeOf(url));
  const { defaults = {}, cohort = {} } = options;
  refuseUnknown(defaults, DEFAULTS, "defaults");
  refuseUnknown(cohort, COHORT, "cohort");
  const drift = options.drift ?? CONNECT_DEFAULTS.drift;
  if (!(drift >= 0 && drift <= 0.5)) throw wrong("drift", drift, "a part from 0 to 0.5, like 0.01");
  const handOvers = options.cohort?.handOvers ?? CONNECT_DEFAULTS.handOvers;
  if (!(Number.isInteger(handOvers) && handOvers >= 0 && handOvers <= 1024)) {
    throw wrong("cohort.handOvers", handOvers, "a whole number from 0 to 1024");
  }
  const handOverMs = options.cohort?.ms ?? CONNECT_DEFAULTS.handOverMs;
  if (!(handOverMs >= 0)) throw wrong("cohort.ms", handOverMs, "milliseconds of 0 or more");
  return Object.freeze({
    defaults: Object.freeze({ ...options.defaults }),
    drift,
    handOvers,
    handOverMs,
    clock: options.clock ?? systemClock,
  });
}

/** Says where an option belongs that somebody gave to connect itself. */
function placeOf(url: boolean): Advice {
  return (name) => {
    if (Object.hasOwn(DEFAULTS, name)) return `; write { defaults: { ${name} } }`;
    if (Object.hasOwn(COHORT, name)) return `; write { cohort: { ${name} } }`;
    if (!ENGINE_OPTIONS.includes(name)) return "";
    const place = url
      ? `write ?${name}= in the URL`
      : "give it to the function that makes the engine";
    return `; it is an option of the engine: ${place}`;
  };
}

/** Checks one acquire's options against each other and against the engine, before any I/O. */
export function resolveAcquire(
  options: AcquireOptions,
  connection: ConnectTerms,
  engineName: string,
  traits: EngineTraits,
): Terms {
  refuseUnknown(options, ACQUIRE, "acquire");
  const given = withDefaults(options, connection.defaults);
  // An engine may not support the default ttl. A caller that gave no ttl must not be refused for
  // it.
  const defaultMs = Math.min(ACQUIRE_DEFAULTS.ttlMs, traits.ttl.maxMs);
  const ttlMs = checkTtl(given.ttlMs ?? defaultMs, engineName, traits);
  const graceMs = atLeast("graceMs", given.graceMs ?? Math.min(ttlMs / 10, MAX_GRACE_MS), 0);
  const usableMs = ttlMs * (1 - connection.drift) - graceMs;
  if (!(usableMs > 0)) {
    throw wrong(
      "graceMs",
      graceMs,
      `less than ttlMs less drift (${ttlMs * (1 - connection.drift)})`,
    );
  }
  const renewEveryMs =
    given.renewEveryMs === undefined
      ? Math.min(ttlMs / 3, usableMs / 2)
      : atLeast("renewEveryMs", given.renewEveryMs, 1);
  const renew = oneOf("renew", given.renew ?? ACQUIRE_DEFAULTS.renew, [true, false]);
  if (renew && renewEveryMs >= usableMs) {
    throw wrong(
      "renewEveryMs",
      renewEveryMs,
      `less than ttlMs less drift and graceMs (${usableMs}), or the lease is lost before its first renewal`,
    );
  }
  const mode = oneOf<Mode>("mode", given.mode ?? ACQUIRE_DEFAULTS.mode, ["exclusive", "shared"]);
  const limit = given.limit === undefined ? null : whole("limit", given.limit, 1);
  if (limit !== null && mode === "exclusive") {
    throw new UsageError(
      `limit is ${limit}; it needs mode: "shared" beside it, or must be left out`,
    );
  }
  const lockDelayMs = atLeast("lockDelayMs", given.lockDelayMs ?? ACQUIRE_DEFAULTS.lockDelayMs, 0);
  refuseUnsupported(engineName, traits, mode, limit, lockDelayMs);
  return Object.freeze({
    ttlMs,
    waitMs: atLeast("waitMs", given.waitMs ?? ACQUIRE_DEFAULTS.waitMs, 0, Infinity),
    callTimeoutMs: atLeast(
      "callTimeoutMs",
      given.callTimeoutMs ?? ACQUIRE_DEFAULTS.callTimeoutMs,
      1,
    ),
    renew,
    renewEveryMs,
    maxHoldMs: atLeast("maxHoldMs", given.maxHoldMs ?? ACQUIRE_DEFAULTS.maxHoldMs, 1, Infinity),
    graceMs,
    mode,
    limit,
    lockDelayMs,
    label: label(given.label),
    fair: oneOf<Terms["fair"]>("fair", given.fair ?? ACQUIRE_DEFAULTS.fair, ["cohort", "strict"]),
    reentrant: oneOf("reentrant", given.reentrant ?? ACQUIRE_DEFAULTS.reentrant, [true, false]),
    retry: strategy(given.retry),
    signal: abortSignal(given.signal),
  });
}

export function checkTtl(value: number, engineName: string, traits: EngineTraits): number {
  return withinTtl("ttlMs", value, engineName, traits);
}

/** name: the option that decides the ttl. */
export function withinTtl(
  name: string,
  value: unknown,
  engineName: string,
  { ttl: { minMs, maxMs } }: EngineTraits,
): number {
  const isWithin = Number.isSafeInteger(value) && (value as number) >= minMs;
  if (isWithin && (value as number) <= maxMs) return value as number;
  const range = `${minMs} to ${maxMs} (${time(minMs)} to ${time(maxMs)})`;
  throw wrong(name, value, `a whole number from ${range}, which is what ${engineName} can keep`);
}

function time(ms: number): string {
  if (ms > DAY_MS && ms % DAY_MS === 0) return `${ms / DAY_MS} days`;
  return ms >= 1_000 ? `${ms / 1_000} s` : `${ms} ms`;
}

/** An option that is undefined means its default, as everywhere in JavaScript. */
export function withDefaults(options: AcquireOptions, defaults: AcquireOptions): AcquireOptions {
  const merged: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}

function refuseUnsupported(
  engineName: string,
  traits: EngineTraits,
  mode: Mode,
  limit: number | null,
  lockDelayMs: number,
): void {
  const missing = !traits.modes.includes(mode)
    ? `${mode} mode`
    : limit !== null && !traits.limits
      ? "limits on shared claims"
      : lockDelayMs > 0 && !traits.lockDelay
        ? "lockDelayMs"
        : null;
  if (missing) throw new UnsupportedError(`the ${engineName} engine does not offer ${missing}`);
}

function label(value: unknown): string {
  if (value === undefined) return OWN_LABEL;
  if (typeof value === "string" && value.length <= MAX_LABEL && !value.includes("\0")) return value;
  throw wrong("label", value, `a string of at most ${MAX_LABEL} characters without NUL`);
}

function strategy(value: unknown): RetryStrategy | undefined {
  if (value === undefined || typeof value === "function") return value as RetryStrategy | undefined;
  if (typeof value === "object" && value !== null && Symbol.iterator in value) {
    return value as RetryStrategy;
  }
  throw wrong(
    "retry",
    value,
    "an iterable of milliseconds, or a generator function that yields them",
  );
}
