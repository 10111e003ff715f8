import { systemClock } from "../../../core/runtime/clock.js";
import type { Gone, RenewRef } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import type { EtcdClient } from "../client/client.js";
import { found, get, type KeyValue, type Op, type RawTxn, unchanged } from "../client/requests.js";
import type { TrackedClaims } from "../holding/tracked-claims.js";
import { type KeyRecord, readRecord, writeRecord } from "../queue/key-record.js";
import { type LeasePair, type LeasePool, puts } from "./lease-pool.js";
import type { Leases } from "./leases.js";

const MOST_CHANGES = 3;

/** A renewal, with times on the engine's clock. */
export interface Confirmed {
  readonly kind: "confirmed";
  readonly since: number;
  readonly ttlMs: number;
  /** The key as it is now, if this renewal wrote it. */
  readonly moved: KeyValue | null;
  readonly marker: string | null;
  /** The grant was left behind: it has no holder from now on. */
  readonly left: boolean;
}

/** One grant to renew, in the order of the calls. */
export interface WantedRenewal extends Required<RenewRef> {
  readonly order: number;
}

/**
 * Renewals that change a key's record or lease. Each change is based on the key as it was read, and
 * has no effect if the key has changed before it arrives, however late that is.
 */
export class RenewalWrites {
  readonly #client: EtcdClient;
  readonly #leasePool: LeasePool;
  readonly #leases: Leases;
  readonly #trackedClaims: TrackedClaims;

  constructor(
    client: EtcdClient,
    leasePool: LeasePool,
    leases: Leases,
    trackedClaims: TrackedClaims,
  ) {
    this.#client = client;
    this.#leasePool = leasePool;
    this.#leases = leases;
    this.#trackedClaims = trackedClaims;
  }

  /**
   * Whether an earlier change of this grant was sent, not answered, and could still take effect.
   * Writing the key again, even with the same record, prevents that.
   */
  isInDoubt(wanted: WantedRenewal, { modified }: KeyValue): boolean {
    const doubtful = this.#trackedClaims.grant(wanted)?.doubtful;
    for (const old of doubtful ?? []) {
      if (BigInt(old) < BigInt(modified)) doubtful?.delete(old);
    }
    return doubtful?.has(modified) === true;
  }

  /**
   * Moves a grant to the lease of another ttl or away from a lease that is ending, or records
   * another token in use. It does not overwrite a later renewal, nor a revocation of the token in
   * use.
   */
  async write(wanted: WantedRenewal, kv: KeyValue, deadline: number): Promise<Confirmed | Gone> {
    let current = kv;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const now = current;
      const record = readRecord(now)!;
      const over = isOver(record, wanted);
      if (over !== null) return over;
      if (wanted.order < record.order) return this.remaining(wanted, now, record, deadline);
      const { ttlMs, order, leave: left } = wanted;
      const index = Math.max(wanted.index, record.index);
      const next = { ...record, ttlMs, order, index, left, claimed: true, revoked: false };
      const value = writeRecord(next);
      const outcome = await this.#onLife(wanted, record, deadline, async (pair) => {
        const success = puts(now.key, value, pair);
        const answer = await this.#change(wanted, now, success, deadline);
        if (!answer.succeeded) return found(answer, 0)[0] ?? null;
        const modified = answer.header.revision ?? "0";
        const moved = { ...now, value, modified, lease: pair.lease.id };
        // If the new lease has already ended, nobody was notified for this grant, so it moves
        // again.
        const isKept = left || this.#leasePool.isKept(pair);
        return isKept ? confirmed(pair, ttlMs, moved, left) : moved;
      });
      if (outcome === null) return { kind: "gone", why: "expired" };
      if ("kind" in outcome) return outcome;
      current = outcome;
    }
    throw new EngineError("a grant's key changes faster than it can be moved", {
      effect: "unknown",
      retryable: true,
    });
  }

  /** A grant that is left behind gets leases of its own, which nobody keeps alive. */
  async #onLife<T>(
    { ttlMs, leave }: WantedRenewal,
    { lockDelayMs }: KeyRecord,
    deadline: number,
    act: (pair: LeasePair) => Promise<T>,
  ): Promise<T> {
    if (!leave) return this.#leasePool.on({ ttlMs, lockDelayMs }, deadline, act);
    const marked = lockDelayMs > 0 ? this.#leases.expiring(ttlMs + lockDelayMs, deadline) : null;
    const [lease, marker] = await Promise.all([this.#leases.expiring(ttlMs, deadline), marked]);
    return act({ lease, marker });
  }

  async #change(
    wanted: WantedRenewal,
    now: KeyValue,
    success: readonly Op[],
    deadline: number,
  ): Promise<RawTxn> {
    const doubtful = this.#trackedClaims.grant(wanted)?.doubtful;
    const txn = { compare: [unchanged(now)], success, failure: [get(now.key)] };
    doubtful?.add(now.modified);
    try {
      const answer = await this.#client.txn(txn, { deadline, repeatable: true, urgent: true });
      doubtful?.delete(now.modified);
      return answer;
    } catch (error) {
      if (error instanceof EngineError && error.effect === "none") doubtful?.delete(now.modified);
      throw error;
    }
  }

  /** A later renewal has already taken effect: this one answers what remains of that. */
  async remaining(
    wanted: WantedRenewal,
    kv: KeyValue,
    { ttlMs, left }: KeyRecord,
    deadline: number,
  ): Promise<Confirmed | Gone> {
    const marker = this.#trackedClaims.grant(wanted)?.marker ?? null;
    const kept = this.#leases.find(kv.lease);
    const answer = { kind: "confirmed", moved: null, marker, left } as const;
    if (kept !== null) {
      return { ...answer, since: kept.since, ttlMs: Math.min(ttlMs, kept.ttlMs) };
    }
    const since = systemClock.now();
    const { leastMs = 0 } = (await this.#leases.remainingOf(kv, deadline)) ?? {};
    return leastMs === 0
      ? { kind: "gone", why: "expired" }
      : { ...answer, since, ttlMs: Math.min(ttlMs, leastMs) };
  }
}

/**
 * A grant that was left behind has no holder. A revocation applies to the token in use at that
 * time.
 */
export function isOver({ left, revoked, index }: KeyRecord, wanted: WantedRenewal): Gone | null {
  if (left && !wanted.leave) return { kind: "gone", why: "expired" };
  return revoked && wanted.index <= index ? { kind: "gone", why: "revoked" } : null;
}

export function confirmed(
  { lease, marker }: LeasePair,
  ttlMs: number,
  moved: KeyValue | null,
  left = false,
): Confirmed {
  const since = Math.min(lease.since, marker?.since ?? Infinity);
  return { kind: "confirmed", since, ttlMs, moved, marker: marker?.id ?? null, left };
}
