import { systemClock } from "../../clock.js";
import type { CallOptions, EtcdClient } from "./client.js";
import { withoutEffect } from "./failure.js";
import type { Header } from "./requests.js";

// Near its end a lease is not worth keeping: what hangs on it is moved to a new one.
const LAST_PART = 0.9;

/** One etcd lease that all grants of one life share. */
export interface SharedLease {
  readonly id: string;
  readonly ttlMs: number;
  /** On the engine's clock: the send of the grant or of the last keepalive known to be good. */
  since: number;
}

interface Kept extends SharedLease {
  /** A keepalive that was acknowledged, by a leader that may have been none any more. */
  heard: { readonly sentAt: number; readonly ackedAt: number; readonly term: string } | null;
}

/**
 * The leases of this process, one for each length of life. They are kept alive when somebody needs
 * them, so what nobody renews ends.
 *
 * A leader that was paused may acknowledge a keepalive although another one has long let the lease
 * expire. So an acknowledgement counts only once a later answer of the majority comes from the same
 * term: no other leader can have been elected in between.
 */
export class Leases {
  readonly #client: EtcdClient;
  readonly #kept = new Map<number, Kept>();
  readonly #underWay = new Map<number, Promise<Kept>>();
  readonly #graves = new Map<number, Kept>();
  readonly #digging = new Map<number, Promise<Kept>>();

  constructor(client: EtcdClient) {
    this.#client = client;
    client.onAnswer = (term, askedAt) => this.#prove(term, askedAt);
  }

  /** A lease for at least ttlMs that was confirmed no longer ago than this part of its life. */
  async ready(ttlMs: number, part: number, deadline: number): Promise<SharedLease> {
    const seconds = Math.ceil(ttlMs / 1_000);
    const kept = this.#kept.get(seconds);
    // What was acknowledged just now is proven by the answer to whatever the caller asks next.
    const newest = Math.max(kept?.since ?? -Infinity, kept?.heard?.sentAt ?? -Infinity);
    if (kept !== undefined && systemClock.now() - newest <= kept.ttlMs * part) return kept;
    let work = this.#underWay.get(seconds);
    if (work === undefined) {
      work = this.#refresh(seconds, kept, deadline).finally(() => this.#underWay.delete(seconds));
      this.#underWay.set(seconds, work);
    }
    try {
      return await work;
    } catch (error) {
      // Whatever this was for has not been sent yet.
      throw withoutEffect(error);
    }
  }

  /** The one for this life, as it is. */
  peek(ttlMs: number): SharedLease | null {
    return this.#kept.get(Math.ceil(ttlMs / 1_000)) ?? null;
  }

  /** One of ours, if it is. */
  find(id: string): SharedLease | null {
    for (const kept of this.#kept.values()) if (kept.id === id) return kept;
    return null;
  }

  /** The server does not know one of them any more; which one, it does not say. */
  forgetAll(): void {
    this.#kept.clear();
    this.#graves.clear();
  }

  /**
   * Something hangs on this lease, or on one of them, that could not be taken away: it is kept alive no
   * more, and ends with it. Whatever else hangs on it is moved when it is renewed.
   */
  retire(id: string | null): void {
    for (const [seconds, kept] of this.#kept) {
      if (id === null || kept.id === id) this.#kept.delete(seconds);
    }
  }

  /** A lease that nobody will keep alive: what hangs on it ends by itself. */
  dying(ttlMs: number, deadline: number): Promise<SharedLease> {
    return this.#grant(Math.max(1, Math.ceil(ttlMs / 1_000)), deadline);
  }

  /** For tombstones, which share one as long as it has enough life left. */
  async grave(ttlMs: number, deadline: number): Promise<SharedLease> {
    const seconds = 2 * Math.ceil(ttlMs / 1_000);
    const known = this.#graves.get(seconds);
    if (known !== undefined && known.ttlMs - ageOf(known) >= ttlMs) return known;
    const digging = this.#digging.get(seconds) ?? this.#grant(seconds, deadline);
    this.#digging.set(seconds, digging);
    try {
      const grave = await digging;
      this.#graves.set(seconds, grave);
      return grave;
    } catch (error) {
      throw withoutEffect(error);
    } finally {
      this.#digging.delete(seconds);
    }
  }

  /** What is left of any lease: etcd counts in whole seconds, so between the two. */
  async left(id: string, deadline: number): Promise<{ leastMs: number; mostMs: number }> {
    const { TTL = "0", grantedTTL = "0" } = await this.#client.call<Remaining>(
      "/v3/lease/timetolive",
      { ID: id },
      { deadline, repeatable: true },
    );
    const seconds = Number(TTL);
    if (seconds < 0) return { leastMs: 0, mostMs: 0 };
    const mostMs = Math.min(seconds + 1, Number(grantedTTL)) * 1_000;
    return { leastMs: seconds * 1_000, mostMs };
  }

  async #refresh(seconds: number, kept: Kept | undefined, deadline: number): Promise<Kept> {
    if (kept !== undefined && ageOf(kept) < kept.ttlMs * LAST_PART) {
      if (await this.#keepAlive(kept, deadline)) return kept;
    }
    const fresh = await this.#grant(seconds, deadline);
    for (const [life, old] of this.#kept) if (ageOf(old) > old.ttlMs) this.#kept.delete(life);
    this.#kept.set(seconds, fresh);
    return fresh;
  }

  /** False when the lease is no more. */
  async #keepAlive(kept: Kept, deadline: number): Promise<boolean> {
    const sentAt = systemClock.now();
    const { header, TTL = "0" } = await this.#client.call<Remaining>(
      "/v3/lease/keepalive",
      { ID: kept.id },
      urgent(deadline),
    );
    if (Number(TTL) <= 0) return false;
    kept.heard = { sentAt, ackedAt: systemClock.now(), term: header.raft_term ?? "0" };
    return true;
  }

  /** A grant is agreed on by a majority, so it needs no further proof. */
  async #grant(seconds: number, deadline: number): Promise<Kept> {
    const since = systemClock.now();
    const body = { TTL: String(seconds), ID: "0" };
    // Should an answer be lost, a lease without keys is left, and ends by itself.
    const { ID, TTL } = await this.#client.call<{ ID: string; TTL: string }>(
      "/v3/lease/grant",
      body,
      urgent(deadline),
    );
    return { id: ID, ttlMs: Number(TTL) * 1_000, since, heard: null };
  }

  #prove(term: string, askedAt: number): void {
    for (const kept of this.#kept.values()) {
      const { heard } = kept;
      if (heard === null || askedAt < heard.ackedAt) continue;
      if (heard.term === term) kept.since = Math.max(kept.since, heard.sentAt);
      kept.heard = null;
    }
  }
}

interface Remaining {
  readonly header: Header;
  readonly TTL?: string;
  readonly grantedTTL?: string;
}

function ageOf(kept: SharedLease): number {
  return systemClock.now() - kept.since;
}

function urgent(deadline: number): CallOptions {
  return { deadline, repeatable: true, urgent: true };
}
