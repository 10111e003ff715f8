import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { CallOptions, EtcdClient } from "../client/client.js";
import { withoutEffect } from "../client/failure.js";
import { found, get, type KeyValue, put } from "../client/requests.js";
import { leaseAnswer } from "../client/shapes.js";

// A lease near its end is not kept alive: its keys move to a new one.
const LAST_PART = 0.9;
const MOST_PROOFS = 3;
// As a part of a lease's life. Other calls wait for the same keepalive, and may have less time.
const FIRST_TRY = 1 / 6;

/** One etcd lease, shared by all grants with the same ttl. */
export interface SharedLease {
  readonly id: string;
  readonly ttlMs: number;
  /** On the engine's clock: when the grant, or the last proven keepalive, was sent. */
  since: number;
}

interface KeptLease extends SharedLease {
  /** An acknowledged keepalive that is not proven yet: its leader may have been deposed. */
  acked: { readonly sentAt: number; readonly ackedAt: number; readonly term: string } | null;
}

/**
 * The leases of this process, one for each ttl. They are kept alive only when a call needs them, so
 * claims that nobody renews end.
 *
 * A leader that was paused may acknowledge a keepalive although a new leader has already let the
 * lease expire. So an acknowledgement counts only once a later majority answer comes from the same
 * term: then no other leader was elected in between.
 *
 * Each lease gets a canary key before any other key, so that we hear of its end (notifications.ts).
 */
export class Leases {
  readonly #client: EtcdClient;
  readonly #kept = new Map<number, KeptLease>();
  readonly #underWay = new Map<number, Promise<KeptLease>>();
  readonly #tombstoneLeases = new Map<number, KeptLease>();
  readonly #makingTombstoneLeases = new Map<number, Promise<KeptLease>>();
  readonly #canaryOf: (lease: string) => string;
  /** Called when a keepalive finds that a lease has ended. */
  onEnd: (id: string) => void = () => {};

  constructor(client: EtcdClient, canaryOf: (lease: string) => string) {
    this.#client = client;
    this.#canaryOf = canaryOf;
    client.onAnswer = (term, askedAt) => this.#prove(term, askedAt);
  }

  /** A lease for at least ttlMs that was confirmed within this part of its life. */
  async ready(ttlMs: number, part: number, deadline: number): Promise<SharedLease> {
    const seconds = Math.ceil(ttlMs / 1_000);
    const kept = this.#kept.get(seconds);
    // A fresh acknowledgement is proven by the answer to the caller's next request.
    const newest = Math.max(kept?.since ?? -Infinity, kept?.acked?.sentAt ?? -Infinity);
    if (kept !== undefined && systemClock.now() - newest <= kept.ttlMs * part) return kept;
    const refresh = () => this.#refresh(seconds, this.#kept.get(seconds), deadline);
    return together(this.#underWay, seconds, deadline, refresh);
  }

  /** The lease for this ttl, as it is. */
  current(ttlMs: number): SharedLease | null {
    return this.#kept.get(Math.ceil(ttlMs / 1_000)) ?? null;
  }

  /** The lease with this id, if it is ours. */
  find(id: string): SharedLease | null {
    for (const kept of this.#kept.values()) if (kept.id === id) return kept;
    return null;
  }

  ids(): string[] {
    return [...this.#kept.values()].map(({ id }) => id);
  }

  /** The server no longer knows one of the leases, and does not say which one. */
  forgetAll(): void {
    this.#kept.clear();
    this.#tombstoneLeases.clear();
  }

  /**
   * A key on this lease (or, for null, on any of them) could not be deleted. The lease is no longer
   * kept alive, so the key ends with it. Other keys on it move to a new lease when they are
   * renewed.
   */
  retire(id: string | null): void {
    for (const [seconds, kept] of this.#kept) {
      if (id === null || kept.id === id) this.#kept.delete(seconds);
    }
  }

  /** A lease that nobody keeps alive, so that its keys end by themselves. */
  expiring(ttlMs: number, deadline: number): Promise<SharedLease> {
    return this.#grant(Math.max(1, Math.ceil(ttlMs / 1_000)), deadline);
  }

  /** A lease for tombstones, which share one as long as it has enough life left. */
  async ofTombstones(ttlMs: number, deadline: number): Promise<SharedLease> {
    const seconds = 2 * Math.ceil(ttlMs / 1_000);
    const known = this.#tombstoneLeases.get(seconds);
    if (known !== undefined && known.ttlMs - ageOf(known) >= ttlMs) return known;
    const make = () => this.#grant(seconds, deadline);
    const fresh = await together(this.#makingTombstoneLeases, seconds, deadline, make);
    this.#tombstoneLeases.set(seconds, fresh);
    return fresh;
  }

  /** The remaining time of any lease, as a range: etcd counts in whole seconds. */
  async remaining(id: string, deadline: number): Promise<RemainingTime> {
    const answer = await this.#client.call("/v3/lease/timetolive", { ID: id }, leaseAnswer(id), {
      deadline,
      repeatable: true,
    });
    const { header, TTL = "0", grantedTTL = "0" } = answer;
    const seconds = Number(TTL);
    const term = header.raft_term;
    if (seconds < 0) return { leastMs: 0, mostMs: 0, term };
    const mostMs = Math.min(seconds + 1, Number(grantedTTL)) * 1_000;
    return { leastMs: seconds * 1_000, mostMs, term };
  }

  /**
   * The remaining time of a key, by its lease; null if the key is no longer on that lease. One
   * leader alone gives this answer, so like a keepalive it counts only with a majority answer from
   * the same term.
   */
  async remainingOf({ key, lease }: KeyValue, deadline: number): Promise<RemainingTime | null> {
    for (let proofs = 1; ; proofs++) {
      const left = await this.remaining(lease, deadline);
      const txn = { compare: [], success: [get(key)], failure: [] };
      const answer = await this.#client.txn(txn, urgent(deadline));
      if (found(answer, 0)[0]?.lease !== lease) return null;
      if (answer.header.raft_term === left.term) return left;
      if (proofs === MOST_PROOFS) throw changing();
    }
  }

  async #refresh(
    seconds: number,
    kept: KeptLease | undefined,
    deadline: number,
  ): Promise<KeptLease> {
    if (kept !== undefined && ageOf(kept) < kept.ttlMs * LAST_PART) {
      if (await this.#keepAlive(kept, deadline)) return kept;
      this.onEnd(kept.id);
    }
    const fresh = await this.#withCanary(seconds, deadline);
    for (const [pair, old] of this.#kept) if (ageOf(old) > old.ttlMs) this.#kept.delete(pair);
    this.#kept.set(seconds, fresh);
    return fresh;
  }

  async #withCanary(seconds: number, deadline: number): Promise<KeptLease> {
    const fresh = await this.#grant(seconds, deadline);
    const success = [put(this.#canaryOf(fresh.id), "", fresh.id)];
    const txn = { compare: [], success, failure: [] };
    const firstTryMs = fresh.ttlMs * FIRST_TRY;
    await this.#client.txn(txn, { ...urgent(deadline), firstTryMs });
    return fresh;
  }

  /** False if the lease has ended. */
  async #keepAlive(kept: KeptLease, deadline: number): Promise<boolean> {
    const sentAt = systemClock.now();
    const { header, TTL = "0" } = await this.#client.call(
      "/v3/lease/keepalive",
      { ID: kept.id },
      leaseAnswer(kept.id),
      { ...urgent(deadline), firstTryMs: kept.ttlMs * FIRST_TRY },
    );
    if (Number(TTL) <= 0) return false;
    kept.acked = { sentAt, ackedAt: systemClock.now(), term: header.raft_term };
    return true;
  }

  /** A majority agrees on a new lease, so it needs no further proof. */
  async #grant(seconds: number, deadline: number): Promise<KeptLease> {
    const since = systemClock.now();
    const body = { TTL: String(seconds), ID: "0" };
    // If the answer is lost, a lease without keys is left, which ends by itself.
    const { ID, TTL } = await this.#client.call("/v3/lease/grant", body, leaseAnswer(null), {
      ...urgent(deadline),
      firstTryMs: seconds * 1_000 * FIRST_TRY,
    });
    return { id: ID, ttlMs: Number(TTL) * 1_000, since, acked: null };
  }

  #prove(term: string, askedAt: number): void {
    for (const kept of this.#kept.values()) {
      const { acked } = kept;
      if (acked === null || askedAt < acked.ackedAt) continue;
      if (acked.term === term) kept.since = Math.max(kept.since, acked.sentAt);
      kept.acked = null;
    }
  }
}

interface RemainingTime {
  readonly leastMs: number;
  readonly mostMs: number;
  /** The term of the leader that answered. */
  readonly term: string;
}

/**
 * Runs one request at a time for each ttl, and all callers wait for it. The caller that began it
 * may have had less time than this one, so a request that timed out is begun again.
 */
async function together(
  underWay: Map<number, Promise<KeptLease>>,
  seconds: number,
  deadline: number,
  begin: () => Promise<KeptLease>,
): Promise<KeptLease> {
  for (;;) {
    const joined = underWay.get(seconds);
    const work = joined ?? begin().finally(() => underWay.delete(seconds));
    underWay.set(seconds, work);
    try {
      return await work;
    } catch (error) {
      const isAnswered = !(error instanceof EngineError) || error.reason !== "unreachable";
      if (joined !== undefined && !isAnswered && systemClock.now() < deadline) continue;
      // The request that needed the lease has not been sent yet.
      throw withoutEffect(error);
    }
  }
}

function ageOf(kept: SharedLease): number {
  return systemClock.now() - kept.since;
}

function changing(): EngineError {
  const message = "etcd's leaders change faster than a lease can be asked after";
  return new EngineError(message, { effect: "unknown", retryable: true });
}

function urgent(deadline: number): CallOptions {
  return { deadline, repeatable: true, urgent: true };
}
