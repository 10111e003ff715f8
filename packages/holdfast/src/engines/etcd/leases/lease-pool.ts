import { isLeaseGone } from "../client/failure.js";
import { type Op, put } from "../client/requests.js";
import { markerOf } from "../queue/keys.js";
import type { Entry } from "../queue/queue.js";
import type { Leases, SharedLease } from "./leases.js";

/** A waiter's key ends so soon after its last heartbeat, and no later: the next one has its turn. */
const WAITER_MS = 3_000;
/** A lease is good to put a grant on for so much of its life. */
const FRESH = 1 / 3;

/** What hangs on which lease: the grant's own, and with a lock-delay its mark's. */
export interface LeasePair {
  readonly lease: SharedLease;
  readonly marker: SharedLease | null;
}

type Span = Pick<Entry, "ttlMs" | "lockDelayMs">;

/** Leases for what waits and what holds, kept alive for whoever asks for them. */
export class LeasePool {
  readonly #leases: Leases;

  constructor(leases: Leases) {
    this.#leases = leases;
  }

  /** Keeps alive what a waiter of this ttl hangs on, unless this part of its life was confirmed. */
  ofWaiter(ttlMs: number, part: number, deadline: number): Promise<SharedLease> {
    return this.#leases.ready(Math.min(ttlMs, WAITER_MS), part, deadline);
  }

  /** How long a waiter of this ttl is kept after its last heartbeat. */
  waiterMs(ttlMs: number): number {
    const asked = Math.min(ttlMs, WAITER_MS);
    return this.#leases.peek(asked)?.ttlMs ?? Math.ceil(asked / 1_000) * 1_000;
  }

  freshOfWaiter(ttlMs: number, deadline: number): Promise<SharedLease> {
    return this.ofWaiter(ttlMs, FRESH, deadline);
  }

  async of({ ttlMs, lockDelayMs }: Span, part: number, deadline: number): Promise<LeasePair> {
    const lifeMs = ttlMs + lockDelayMs;
    const [lease, marker] = await Promise.all([
      this.#leases.ready(ttlMs, part, deadline),
      // The grant counts from the older of the two, so the mark's must be as fresh, not as a part.
      lockDelayMs > 0 ? this.#leases.ready(lifeMs, (part * ttlMs) / lifeMs, deadline) : null,
    ]);
    return { lease, marker };
  }

  isKept({ lease, marker }: LeasePair): boolean {
    const isKept = ({ id }: SharedLease) => this.#leases.find(id) !== null;
    return isKept(lease) && (marker === null || isKept(marker));
  }

  /** A lease that the server has let expire is replaced, once; nothing was done until then. */
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

/** Puts a grant's key, and its mark where it has one. */
export function puts(key: string, value: string | null, { lease, marker }: LeasePair): Op[] {
  const mark = marker === null ? [] : [put(markerOf(key), "", marker.id)];
  return [put(key, value, lease.id), ...mark];
}
