import { systemClock } from "../../../core/runtime/clock.js";
import type { Failed, Gone, RenewRef } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { failedRequest, isOutOfSpace } from "../client/failure.js";
import { found, get, type KeyValue, type Op } from "../client/requests.js";
import type { TrackedClaims } from "../holding/tracked-claims.js";
import { type KeyRecord, readRecord } from "../queue/key-record.js";
import type { Keys } from "../queue/keys.js";
import type { LeasePair, LeasePool } from "./lease-pool.js";
import {
  type Confirmed,
  confirmed,
  isOver,
  type RenewalWrites,
  type WantedRenewal,
} from "./renewal-writes.js";

/** etcd takes 128 operations in a transaction by default. */
const MOST_GETS = 100;
/** A lease that was confirmed within this part of its life needs no new keepalive. */
const RECENT = 0.1;
const MOST_PROOFS = 3;

type Outcome = Confirmed | Gone | Failed;

interface Renewal {
  readonly wanted: WantedRenewal;
  readonly pair: LeasePair;
}

/**
 * Renews the grants of one process. One keepalive confirms the lease that grants with the same ttl
 * share. A keepalive does not say whether each key still exists and is not revoked, so the keys are
 * read after it.
 */
export class Renewals {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leasePool: LeasePool;
  readonly #writes: RenewalWrites;
  readonly #trackedClaims: TrackedClaims;

  constructor(
    client: EtcdClient,
    keys: Keys,
    leasePool: LeasePool,
    writes: RenewalWrites,
    trackedClaims: TrackedClaims,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#leasePool = leasePool;
    this.#writes = writes;
    this.#trackedClaims = trackedClaims;
  }

  async renew(refs: readonly RenewRef[], order: number, deadline: number): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const works: Promise<unknown>[] = [];
    const usual: [at: number, wanted: WantedRenewal][] = [];
    for (const [i, ref] of refs.entries()) {
      const wanted = { index: 0, leave: false, ...ref, order };
      const grant = this.#trackedClaims.grant(ref);
      if (grant !== null) grant.leaving ||= wanted.leave;
      const isLate = grant !== null && order < grant.order;
      if (grant !== null && !isLate) grant.order = order;
      if (grant?.gone) outcomes[i] = { kind: "gone", why: "expired" };
      else if (isLate) {
        const late = this.#renewLate(wanted, deadline).catch(failedRequest);
        works.push(late.then((outcome) => (outcomes[i] = outcome)));
      } else if (grant?.claimed === false || wanted.leave) {
        // This grant took over when its predecessor ended. Now its key is made to say so.
        const self = grant?.claimed === false ? grant.self : null;
        const written = this.#renewByWrite(wanted, self, deadline).catch(failedRequest);
        works.push(written.then((outcome) => (outcomes[i] = outcome)));
      } else usual.push([i, wanted]);
    }
    for (let i = 0; i < usual.length; i += MOST_GETS) {
      const chunk = usual.slice(i, i + MOST_GETS);
      const asked = chunk.map(([, wanted]) => wanted);
      // A chunk that cannot be read does not fail the others.
      const answered = this.#renewChunk(asked, deadline).catch((error: unknown) =>
        asked.map(() => failedRequest(error)),
      );
      const renewed = answered.then((answers) => {
        for (const [j, [at]] of chunk.entries()) outcomes[at] = answers[j]!;
      });
      works.push(renewed);
    }
    await Promise.all(works);
    return outcomes;
  }

  /**
   * A later renewal was already asked for. A renewal that changes nothing leaves no trace in the
   * key.
   */
  async #renewLate(wanted: WantedRenewal, deadline: number): Promise<Outcome> {
    const { resource, grantId } = wanted;
    const [kv] = await this.#read([get(this.#keys.claimKey(resource, grantId))], deadline);
    const record = kv === undefined ? null : readRecord(kv);
    if (kv === undefined || !record?.claimed) return { kind: "gone", why: "expired" };
    return isOver(record, wanted) ?? this.#writes.remaining(wanted, kv, record, deadline);
  }

  /** Renews a grant whose key must change. */
  async #renewByWrite(
    wanted: WantedRenewal,
    self: KeyValue | null,
    deadline: number,
  ): Promise<Outcome> {
    if (self !== null) {
      return this.#writes.write(wanted, self, deadline).catch((error: unknown) => {
        if (!isOutOfSpace(error)) throw error;
        return this.#keepOnWaiterLease(wanted, self, deadline, error);
      });
    }
    const { resource, grantId } = wanted;
    const [kv] = await this.#read([get(this.#keys.claimKey(resource, grantId))], deadline);
    if (kv === undefined || !readRecord(kv)?.claimed) return { kind: "gone", why: "expired" };
    return this.#writes.write(wanted, kv, deadline);
  }

  /**
   * etcd is out of space: it refuses writes but still keeps leases alive. So a grant that took over
   * from its predecessor stays on its waiter lease, for as long as that lasts, until its key can be
   * written.
   */
  async #keepOnWaiterLease(
    wanted: WantedRenewal,
    { key, created, lease: id }: KeyValue,
    deadline: number,
    error: unknown,
  ): Promise<Outcome> {
    const lease = await this.#leasePool.ofWaiter(wanted.ttlMs, RECENT, deadline);
    const [kv] = await this.#read([get(key)], deadline);
    if (kv?.created !== created) return { kind: "gone", why: "expired" };
    const over = isOver(readRecord(kv)!, wanted);
    if (over !== null) return over;
    if (lease.id !== id || kv.lease !== id) throw error;
    return confirmed({ lease, marker: null }, Math.min(wanted.ttlMs, lease.ttlMs), null);
  }

  async #renewChunk(all: readonly WantedRenewal[], deadline: number): Promise<Outcome[]> {
    for (let proofs = 1; ; proofs++) {
      const startedAt = systemClock.now();
      const renewals = await Promise.all(
        all.map(async (wanted) => ({ wanted, pair: await this.#pairFor(wanted, deadline) })),
      );
      const gets = all.map(({ resource, grantId }) => get(this.#keys.claimKey(resource, grantId)));
      const keys = await this.#read(gets, deadline);
      // Not proven: the leader changed between keepalive and reading, so the old leader may have
      // answered.
      const proven = renewals.every(({ pair }) => isRecent(pair, startedAt));
      if (!proven && proofs < MOST_PROOFS) continue;
      return Promise.all(
        renewals.map((renewal, i) => this.#renewUsually(renewal, keys[i], deadline)),
      );
    }
  }

  /**
   * The lock-delay of this process's own grants is known here; that of others is read with the key.
   */
  #pairFor(wanted: WantedRenewal, deadline: number): Promise<LeasePair> {
    const lockDelayMs = this.#trackedClaims.grant(wanted)?.lockDelayMs ?? 0;
    return this.#leasePool.of({ ttlMs: wanted.ttlMs, lockDelayMs }, RECENT, deadline);
  }

  async #renewUsually(
    { wanted, pair }: Renewal,
    kv: KeyValue | undefined,
    deadline: number,
  ): Promise<Outcome> {
    try {
      const record = kv === undefined ? null : readRecord(kv);
      if (kv === undefined || record === null) return { kind: "gone", why: "expired" };
      const over = isOver(record, wanted);
      if (over !== null) return over;
      if (!record.claimed) return { kind: "gone", why: "unknown" };
      const isKept = this.#isOn(pair, wanted, kv, record) && !this.#writes.isInDoubt(wanted, kv);
      const isSame = record.ttlMs === wanted.ttlMs && record.index >= wanted.index && !wanted.leave;
      if (isKept && isSame) return confirmed(pair, wanted.ttlMs, null);
      return await this.#writes.write(wanted, kv, deadline);
    } catch (error) {
      return failedRequest(error);
    }
  }

  async #read(gets: readonly Op[], deadline: number): Promise<(KeyValue | undefined)[]> {
    const txn = { compare: [], success: gets, failure: [] };
    const answer = await this.#client.txn(txn, { deadline, repeatable: true, urgent: true });
    return gets.map((_, i) => found(answer, i)[0]);
  }

  #isOn(
    { lease, marker }: LeasePair,
    wanted: WantedRenewal,
    kv: KeyValue,
    record: KeyRecord,
  ): boolean {
    const markedOn = record.lockDelayMs > 0 ? this.#trackedClaims.grant(wanted)?.marker : null;
    return kv.lease === lease.id && markedOn === (marker?.id ?? null);
  }
}

function isRecent({ lease, marker }: LeasePair, at: number): boolean {
  return Math.min(lease.since, marker?.since ?? Infinity) >= at - lease.ttlMs * RECENT;
}
