import { systemClock } from "../../../core/runtime/clock.js";
import type { Failed, Gone, RenewRef } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { failedRequest, isOutOfSpace } from "../client/failure.js";
import { found, get, type KeyValue, type Op } from "../client/requests.js";
import type { Holdings } from "../holding/holdings.js";
import type { Keys } from "../queue/keys.js";
import { type Entry, readEntry } from "../queue/queue.js";
import { type Changes, type Confirmed, confirmed, isOver, type Wanted } from "./changes.js";
import type { LeasePair, LeasePool } from "./lease-pool.js";

/** etcd takes 128 operations in a transaction by default. */
const MOST_GETS = 100;
/** A lease that was confirmed within this part of its life needs no new keepalive. */
const RECENT = 0.1;
const MOST_PROOFS = 3;

type Outcome = Confirmed | Gone | Failed;

interface Renewal {
  readonly wanted: Wanted;
  readonly pair: LeasePair;
}

/**
 * Renews the grants of one process. One keepalive confirms the lease that grants with the same ttl share.
 * A keepalive does not say whether each key still exists and is not revoked, so the keys are read after
 * it.
 */
export class Renewals {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leasePool: LeasePool;
  readonly #changes: Changes;
  readonly #holdings: Holdings;

  constructor(
    client: EtcdClient,
    keys: Keys,
    leasePool: LeasePool,
    changes: Changes,
    holdings: Holdings,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#leasePool = leasePool;
    this.#changes = changes;
    this.#holdings = holdings;
  }

  async renew(refs: readonly RenewRef[], order: number, deadline: number): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    const works: Promise<unknown>[] = [];
    const usual: [at: number, wanted: Wanted][] = [];
    for (const [i, ref] of refs.entries()) {
      const wanted = { index: 0, leave: false, ...ref, order };
      const grant = this.#holdings.grant(ref);
      if (grant !== null) grant.leaving ||= wanted.leave;
      const isLate = grant !== null && order < grant.order;
      if (grant !== null && !isLate) grant.order = order;
      if (grant?.gone) outcomes[i] = { kind: "gone", why: "expired" };
      else if (isLate) {
        const late = this.#late(wanted, deadline).catch(failedRequest);
        works.push(late.then((outcome) => (outcomes[i] = outcome)));
      } else if (grant?.told === false || wanted.leave) {
        // This grant took over when its predecessor ended. Now its key is made to say so.
        const self = grant?.told === false ? grant.self : null;
        const written = this.#written(wanted, self, deadline).catch(failedRequest);
        works.push(written.then((outcome) => (outcomes[i] = outcome)));
      } else usual.push([i, wanted]);
    }
    for (let i = 0; i < usual.length; i += MOST_GETS) {
      const chunk = usual.slice(i, i + MOST_GETS);
      const asked = chunk.map(([, wanted]) => wanted);
      // A chunk that cannot be read does not fail the others.
      const answered = this.#chunk(asked, deadline).catch((error: unknown) =>
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

  /** A later renewal was already asked for. A renewal that changes nothing leaves no trace in the key. */
  async #late(wanted: Wanted, deadline: number): Promise<Outcome> {
    const { resource, grantId } = wanted;
    const [kv] = await this.#read([get(this.#keys.entry(resource, grantId))], deadline);
    const entry = kv === undefined ? null : readEntry(kv);
    if (kv === undefined || !entry?.claimed) return { kind: "gone", why: "expired" };
    return isOver(entry, wanted) ?? this.#changes.remaining(wanted, kv, entry, deadline);
  }

  /** Renews a grant whose key must change. */
  async #written(wanted: Wanted, self: KeyValue | null, deadline: number): Promise<Outcome> {
    if (self !== null) {
      return this.#changes.write(wanted, self, deadline).catch((error: unknown) => {
        if (!isOutOfSpace(error)) throw error;
        return this.#asItIs(wanted, self, deadline, error);
      });
    }
    const { resource, grantId } = wanted;
    const [kv] = await this.#read([get(this.#keys.entry(resource, grantId))], deadline);
    if (kv === undefined || !readEntry(kv)?.claimed) return { kind: "gone", why: "expired" };
    return this.#changes.write(wanted, kv, deadline);
  }

  /**
   * etcd is out of space: it refuses writes but still keeps leases alive. So a grant that took over from
   * its predecessor stays on its waiter lease, for as long as that lasts, until its key can be written.
   */
  async #asItIs(
    wanted: Wanted,
    { key, created, lease: id }: KeyValue,
    deadline: number,
    error: unknown,
  ): Promise<Outcome> {
    const lease = await this.#leasePool.ofWaiter(wanted.ttlMs, RECENT, deadline);
    const [kv] = await this.#read([get(key)], deadline);
    if (kv?.created !== created) return { kind: "gone", why: "expired" };
    const over = isOver(readEntry(kv)!, wanted);
    if (over !== null) return over;
    if (lease.id !== id || kv.lease !== id) throw error;
    return confirmed({ lease, marker: null }, Math.min(wanted.ttlMs, lease.ttlMs), null);
  }

  async #chunk(all: readonly Wanted[], deadline: number): Promise<Outcome[]> {
    for (let proofs = 1; ; proofs++) {
      const startedAt = systemClock.now();
      const renewals = await Promise.all(
        all.map(async (wanted) => ({ wanted, pair: await this.#pairFor(wanted, deadline) })),
      );
      const gets = all.map(({ resource, grantId }) => get(this.#keys.entry(resource, grantId)));
      const keys = await this.#read(gets, deadline);
      // Not proven: the leader changed between keepalive and reading, so the old leader may have answered.
      const proven = renewals.every(({ pair }) => isRecent(pair, startedAt));
      if (!proven && proofs < MOST_PROOFS) continue;
      return Promise.all(renewals.map((renewal, i) => this.#one(renewal, keys[i], deadline)));
    }
  }

  /** The lock-delay of this process's own grants is known here; that of others is read with the key. */
  #pairFor(wanted: Wanted, deadline: number): Promise<LeasePair> {
    const lockDelayMs = this.#holdings.grant(wanted)?.lockDelayMs ?? 0;
    return this.#leasePool.of({ ttlMs: wanted.ttlMs, lockDelayMs }, RECENT, deadline);
  }

  async #one(
    { wanted, pair }: Renewal,
    kv: KeyValue | undefined,
    deadline: number,
  ): Promise<Outcome> {
    try {
      const entry = kv === undefined ? null : readEntry(kv);
      if (kv === undefined || entry === null) return { kind: "gone", why: "expired" };
      const over = isOver(entry, wanted);
      if (over !== null) return over;
      if (!entry.claimed) return { kind: "gone", why: "unknown" };
      const isKept = this.#hangsOn(pair, wanted, kv, entry) && !this.#changes.isInDoubt(wanted, kv);
      const isSame = entry.ttlMs === wanted.ttlMs && entry.index >= wanted.index && !wanted.leave;
      if (isKept && isSame) return confirmed(pair, wanted.ttlMs, null);
      return await this.#changes.write(wanted, kv, deadline);
    } catch (error) {
      return failedRequest(error);
    }
  }

  async #read(gets: readonly Op[], deadline: number): Promise<(KeyValue | undefined)[]> {
    const txn = { compare: [], success: gets, failure: [] };
    const answer = await this.#client.txn(txn, { deadline, repeatable: true, urgent: true });
    return gets.map((_, i) => found(answer, i)[0]);
  }

  #hangsOn({ lease, marker }: LeasePair, wanted: Wanted, kv: KeyValue, entry: Entry): boolean {
    const mark = entry.lockDelayMs > 0 ? this.#holdings.grant(wanted)?.marker : null;
    return kv.lease === lease.id && mark === (marker?.id ?? null);
  }
}

function isRecent({ lease, marker }: LeasePair, at: number): boolean {
  return Math.min(lease.since, marker?.since ?? Infinity) >= at - lease.ttlMs * RECENT;
}
