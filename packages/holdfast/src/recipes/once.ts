import type { Engine, HolderView } from "../engine.js";
import { AcquireTimeoutError, UnsupportedError, UsageError } from "../errors.js";
import { type Known, refuseUnknown } from "../known-options.js";
import type { HeldLease, Lease } from "../lease.js";
import { type AcquireOptions, whole } from "../options.js";
import { type RunFunction, runUnder } from "../run.js";

export interface OnceOptions {
  /** A run that takes longer is over for everybody: the next one may begin, and its lease is lost. */
  readonly atMostMs: number;
  /** A run that is done earlier keeps others out until then, so that clocks that differ make no second one. */
  readonly atLeastMs?: number;
  readonly label?: string;
  readonly callTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type OnceResult<T> =
  | { readonly ran: true; readonly value: T }
  /** Somebody else runs, or has just run: who, as far as the engine tells. */
  | { readonly ran: false; readonly holders: readonly HolderView[] };

const ONCE: Known<OnceOptions> = {
  ...{ atMostMs: true, atLeastMs: true, label: true, callTimeoutMs: true, signal: true },
};

interface Acquirer {
  readonly engine: Pick<Engine, "name" | "traits">;
  acquire(resource: string, options: AcquireOptions): Promise<Lease>;
}

/** Runs fn unless somebody else does at this moment, or did less than atLeastMs ago. */
export async function once<T>(
  locks: Acquirer,
  name: string,
  options: OnceOptions,
  fn: RunFunction<T>,
): Promise<OnceResult<T>> {
  refuseUnknown(options, ONCE, "once");
  const { atMostMs, atLeastMs = 0, ...rest } = options;
  whole("atMostMs", atMostMs, 1);
  whole("atLeastMs", atLeastMs, 0);
  if (atLeastMs > atMostMs) {
    throw new UsageError(`atLeastMs is ${atLeastMs}; it must not exceed atMostMs, ${atMostMs}`);
  }
  if (typeof fn !== "function") throw new UsageError("once takes (name, options, fn)");
  const { name: engineName, traits } = locks.engine;
  if (atLeastMs > 0 && !traits.leaves) {
    throw new UnsupportedError(
      `${engineName} ends its grants with the process that holds them, and so cannot keep others ` +
        "out after it; leave atLeastMs out, or use an engine whose grants have a ttl of their own",
    );
  }
  const terms = { ...rest, ttlMs: atMostMs, renew: false, graceMs: 0, fair: "strict" } as const;
  let lease: Lease;
  try {
    lease = await locks.acquire(name, { ...terms, waitMs: 0 });
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
      if (leftMs > 0 && held.held) await held.leave(Math.max(leftMs, minMs));
    }
  });
  return { ran: true, value };
}
