import { isLeaseGone } from "../client/failure.js";
import { type Op, put } from "../client/requests.js";
import type { KeyRecord } from "../queue/key-record.js";
import { markerOf } from "../queue/keys.js";
import type { Leases, SharedLease } from "./leases.js";

/**
 * A waiter's key ends at most this long after its last heartbeat, so that the next waiter gets its
 * turn.
 */
const WAITER_MS = 3_000;
/** A new grant may use a lease until this part of its life has passed. */
const FRESH = 1 / 3;

/** The lease of a grant's key and, with a lock-delay, the lease of its marker. */
export interface LeasePair {
  readonly lease: SharedLease;
  readonly marker: SharedLease | null;
}

type Span = Pick<KeyRecord, "ttlMs" | "lockDelayMs">;

/** Provides live leases for waiters and for grants. */
export class LeasePool {
  readonly #leases: Leases;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  /**
   * The lease of a waiter with this ttl. Sends a keepalive if more than this part of its life has
   * passed.
   */
  ofWaiter(ttlMs: number, part: number, deadline: number): Promise<SharedLease> {
    return this.#leases.ready(Math.min(ttlMs, WAITER_MS), part, deadline);
  }

  /** How long a waiter with this ttl lives after its last heartbeat. */
  waiterMs(ttlMs: number): number {
    const asked = Math.min(ttlMs, WAITER_MS);
    return this.#leases.current(asked)?.ttlMs ?? Math.ceil(asked / 1_000) * 1_000;
  }

  freshOfWaiter(ttlMs: number, deadline: number): Promise<SharedLease> {
    return this.ofWaiter(ttlMs, FRESH, deadline);
  }

  async of({ ttlMs, lockDelayMs }: Span, part: number, deadline: number): Promise<LeasePair> {
    const lifeMs = ttlMs + lockDelayMs;
    const [lease, marker] = await Promise.all([
      this.#leases.ready(ttlMs, part, deadline),
      // The grant counts from the older lease, so both must be equally fresh in ms, not in parts.
      lockDelayMs > 0 ? this.#leases.ready(lifeMs, (part * ttlMs) / lifeMs, deadline) : null,
    ]);
    return { lease, marker };
  }

  isKept({ lease, marker }: LeasePair): boolean {
    const isKept = ({ id }: SharedLease) => this.#leases.find(id) !== null;
    return isKept(lease) && (marker === null || isKept(marker));
  }

  /** Replaces leases once if the server has let one expire: then the first try had no effect. */
  async on<T>(span: Span, deadline: number, act: (pair: LeasePair) => Promise<T>): Promise<T> {
    const pair = await this.of(span, FRESH, deadline);
    try {
      return await act(pair);
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      this.#leases.forgetAll();
      return act(await this.of(span, FRESH, deadline));
    }
  }
}

/** Operations that put a grant's key and, where it has one, its marker. */
export function puts(key: string, value: string | null, { lease, marker }: LeasePair): Op[] {
  const marking = marker === null ? [] : [put(markerOf(key), "", marker.id)];
  return [put(key, value, lease.id), ...marking];
}
