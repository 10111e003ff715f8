import type { HeldLease, Lease } from "../core/holding/lease.js";
import { type RunFunction, runUnder, wrongOrder } from "../core/holding/run.js";
import { type Known, refuseUnknown } from "../core/input/known-options.js";
import { whole } from "../core/input/option-values.js";
import type { Clock } from "../core/runtime/clock.js";
import type { Engine, HolderView } from "../engine.js";
import { AcquireTimeoutError, EngineError, UnsupportedError, UsageError } from "../errors.js";
import { type AcquireOptions, withinTtl } from "../options.js";

export interface OnceOptions {
  /** The longest time of a run. After it, the lease is lost and another run may begin. */
  readonly atMostMs: number;
  /**
   * A run that ends earlier keeps others out until this time, so that differing clocks cause no
   * second run.
   */
  readonly atLeastMs?: number;
  readonly label?: string;
  readonly callTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type OnceResult<T> =
  | { readonly ran: true; readonly value: T }
  /** Somebody else runs, or has just run. holders: who, as far as the engine tells. */
  | { readonly ran: false; readonly holders: readonly HolderView[] };

/** A grant may be older than its answer: with shared backend leases, by a third of its life. */
const SPARE = 1 / 2;
const MOST_TRIES = 3;

const ONCE: Known<OnceOptions> = {
  ...{ atMostMs: true, atLeastMs: true, label: true, callTimeoutMs: true, signal: true },
};

interface Acquirer {
  readonly engine: Pick<Engine, "name" | "traits">;
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
}

/** Runs fn unless somebody else runs it now, or began less than atLeastMs ago. */
export async function once<T>(
  locks: Acquirer,
  clock: Clock,
  name: string,
  rest: readonly unknown[],
): Promise<OnceResult<T>> {
  const [options, fn] = onceArguments<T>(rest);
  refuseUnknown(options, ONCE, "once");
  const { atMostMs, atLeastMs = 0, ...others } = options;
  whole("atMostMs", atMostMs, 1);
  whole("atLeastMs", atLeastMs, 0);
  if (atLeastMs > atMostMs) {
    throw new UsageError(`atLeastMs is ${atLeastMs}; it must not exceed atMostMs, ${atMostMs}`);
  }
  const { name: engineName, traits } = locks.engine;
  if (atLeastMs > 0 && !traits.leaves) {
    throw new UnsupportedError(
      `${engineName} ends its grants with the process that holds them, and so cannot keep others ` +
        "out after it; leave atLeastMs out, or use an engine whose grants have a ttl of their own",
    );
  }
  const leastMs = Math.min(Math.ceil(atLeastMs * (1 + SPARE)), traits.ttl.maxMs);
  const isShort = atMostMs < leastMs;
  // The ttl is not the caller's word: the error names atMostMs.
  if (!isShort || leastMs < traits.ttl.minMs) withinTtl("atMostMs", atMostMs, engineName, traits);
  const life = isShort ? { ttlMs: leastMs, maxHoldMs: atMostMs } : { ttlMs: atMostMs };
  const terms = {
    ...others,
    ...life,
    renew: false,
    graceMs: 0,
    fair: "strict",
    waitMs: 0,
  } as const;
  let lease: Lease;
  try {
    lease = await takeFor(atLeastMs, clock, name, () => locks.acquire(name, terms));
  } catch (error) {
    if (error instanceof AcquireTimeoutError) return { ran: false, holders: error.holders };
    throw error;
  }
  const { minMs } = traits.ttl;
  const value = await runUnder(locks, lease, async (lease) => {
    try {
      return await fn(lease);
    } finally {
      const held = lease as HeldLease;
      const leftMs = Math.ceil(atLeastMs - held.heldMs());
      if (leftMs > 0 && (held.held || held.isStillOurs)) {
        await held.leaveInTime(Math.max(leftMs, minMs));
      }
    }
  });
  return { ran: true, value };
}

function onceArguments<T>(rest: readonly unknown[]): [OnceOptions, RunFunction<T>] {
  const given = rest.slice(0, rest.findLastIndex((arg) => arg !== undefined) + 1);
  const [options, fn] = given;
  if (given.length === 2 && typeof fn === "function" && typeof options !== "function") {
    return [options as OnceOptions, fn as RunFunction<T>];
  }
  throw wrongOrder("once", [["name", "options", "fn"]], ["name"], given);
}

/**
 * Keeps others out for atLeastMs from the start of the run in any case, even if its process dies.
 * (SQLite proves such a death, and lets the next one in.) A grant may have less than that to live,
 * if its session or shared lease was not confirmed for long. Such a grant is released; the next one
 * is fresher.
 */
async function takeFor(
  atLeastMs: number,
  clock: Clock,
  name: string,
  take: () => Promise<Lease>,
): Promise<Lease> {
  for (let tries = 1; ; tries++) {
    const startedAt = clock.now();
    const lease = await take();
    const { since, lifeMs } = (lease as HeldLease).grant.group;
    const shortMs = Math.ceil(startedAt + atLeastMs - (since + lifeMs));
    if (shortMs <= 0) return lease;
    await lease.release();
    if (tries < MOST_TRIES) continue;
    throw new EngineError(
      `the grant of "${name}" would end ${shortMs} ms before atLeastMs, ${atLeastMs}; nothing was run`,
      { effect: "none", retryable: true },
    );
  }
}
