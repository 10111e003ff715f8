import { systemClock } from "../../clock.js";
import type { Failed, Gone, RenewRef } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { EtcdClient } from "./client.js";
import type { Holdings } from "./holdings.js";
import type { Keys } from "./keys.js";
import { readEntry } from "./line.js";
import { type Life, type Lives, puts } from "./lives.js";
import { found, get, type KeyValue, type RawTxn, unchanged } from "./requests.js";

/** etcd takes 128 operations in a transaction by default. */
const MOST_GETS = 100;
/** A lease that was confirmed within this part of its life is not asked for again. */
const RECENT = 0.1;
const MOST_CHANGES = 3;
const MOST_PROOFS = 3;

/** Renewed for ref.ttlMs, counted on the engine's clock. */
export interface Confirmed {
  readonly kind: "confirmed";
  readonly since: number;
  /** The key as it is now, if it hangs on another lease than before. */
  readonly moved: KeyValue | null;
  readonly marker: string | null;
}

type Outcome = Confirmed | Gone | Failed;

interface Renewal {
  readonly ref: RenewRef;
  readonly life: Life;
}

/**
 * Renews grants of one process. One keepalive confirms the lease that grants of one life share; what a
 * keepalive cannot say, whether each key is still there and not revoked, is read after it.
 */
export class Renewals {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #lives: Lives;
  readonly #holdings: Holdings;

  constructor(client: EtcdClient, keys: Keys, lives: Lives, holdings: Holdings) {
    this.#client = client;
    this.#keys = keys;
    this.#lives = lives;
    this.#holdings = holdings;
  }

  async renew(refs: readonly RenewRef[], deadline: number): Promise<Outcome[]> {
    const outcomes = new Map<RenewRef, Outcome>();
    const isFirst = (ref: RenewRef) => this.#holdings.grant(ref)?.told === false;
    const first = refs.filter(isFirst).map(async (ref) => {
      outcomes.set(ref, await this.#first(ref, deadline));
    });
    const usual = refs.filter((ref) => !isFirst(ref));
    const chunks: Promise<void>[] = [];
    for (let i = 0; i < usual.length; i += MOST_GETS) {
      const chunk = usual.slice(i, i + MOST_GETS);
      const renewed = this.#chunk(chunk, deadline).then((answers) => {
        for (const [j, ref] of chunk.entries()) outcomes.set(ref, answers[j]!);
      });
      chunks.push(renewed);
    }
    await Promise.all([...first, ...chunks]);
    return refs.map((ref) => outcomes.get(ref)!);
  }

  /** Of one that took over by the end of the last before it: now its key is made to say so. */
  #first(ref: RenewRef, deadline: number): Promise<Outcome> {
    return this.#move(ref, this.#holdings.grant(ref)!.self, deadline).catch(failed);
  }

  async #chunk(refs: readonly RenewRef[], deadline: number): Promise<Outcome[]> {
    for (let proofs = 1; ; proofs++) {
      const startedAt = systemClock.now();
      const renewals = await Promise.all(
        refs.map(async (ref) => ({ ref, life: await this.#lifeOf(ref, deadline) })),
      );
      const gets = refs.map(({ resource, grantId }) => get(this.#keys.entry(resource, grantId)));
      const answer = await this.#client.kv<RawTxn>(
        "txn",
        { compare: [], success: gets, failure: [] },
        { deadline, repeatable: true, urgent: true },
      );
      // Not proven: a leader changed between keepalive and reading, and it may have been the old one's.
      const proven = renewals.every(({ life }) => isRecent(life, startedAt));
      if (!proven && proofs < MOST_PROOFS) continue;
      return Promise.all(
        renewals.map((renewal, i) => this.#one(renewal, found(answer, i)[0], deadline)),
      );
    }
  }

  /** The lock-delay of grants that this process was given is known here; others' is read with the key. */
  #lifeOf(ref: RenewRef, deadline: number): Promise<Life> {
    const lockDelayMs = this.#holdings.grant(ref)?.lockDelayMs ?? 0;
    return this.#lives.of({ ttlMs: ref.ttlMs, lockDelayMs }, RECENT, deadline);
  }

  async #one({ ref, life }: Renewal, kv: KeyValue | undefined, deadline: number): Promise<Outcome> {
    try {
      const entry = kv === undefined ? null : readEntry(kv);
      if (kv === undefined || entry === null) return { kind: "gone", why: "expired" };
      if (entry.revoked) return { kind: "gone", why: "revoked" };
      if (!entry.claimed) return { kind: "gone", why: "unknown" };
      const marker = entry.lockDelayMs > 0 ? this.#holdings.grant(ref)?.marker : null;
      const inPlace = kv.lease === life.lease.id && marker === (life.marker?.id ?? null);
      return inPlace ? confirmed(life, null) : await this.#move(ref, kv, deadline);
    } catch (error) {
      return failed(error);
    }
  }

  /** To the lease of another life, or away from one that is ending. A revocation is not overwritten. */
  async #move({ ttlMs }: RenewRef, kv: KeyValue, deadline: number): Promise<Outcome> {
    let current = kv;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const now = current;
      const entry = readEntry(now)!;
      const { lockDelayMs } = entry;
      const value = entry.claimed ? null : JSON.stringify({ ...entry, claimed: true });
      const outcome = await this.#lives.on({ ttlMs, lockDelayMs }, deadline, async (life) => {
        const answer = await this.#client.kv<RawTxn>(
          "txn",
          {
            compare: [unchanged(now)],
            success: puts(now.key, value, life),
            failure: [get(now.key)],
          },
          { deadline, repeatable: true, urgent: true },
        );
        const modified = answer.header.revision ?? "0";
        return answer.succeeded
          ? confirmed(life, {
              ...{ ...now, value: value ?? now.value, modified, lease: life.lease.id },
            })
          : (found(answer, 0)[0] ?? null);
      });
      if (outcome === null) return { kind: "gone", why: "expired" };
      if ("kind" in outcome) return outcome;
      if (readEntry(outcome)?.revoked) return { kind: "gone", why: "revoked" };
      current = outcome;
    }
    throw new EngineError("a grant's key changes faster than it can be moved", {
      effect: "unknown",
      retryable: true,
    });
  }
}

function failed(error: unknown): Failed {
  if (!(error instanceof EngineError)) throw error;
  return { kind: "failed", effect: error.effect, error };
}

function confirmed({ lease, marker }: Life, moved: KeyValue | null): Confirmed {
  const since = Math.min(lease.since, marker?.since ?? Infinity);
  return { kind: "confirmed", since, moved, marker: marker?.id ?? null };
}

function isRecent({ lease, marker }: Life, at: number): boolean {
  return Math.min(lease.since, marker?.since ?? Infinity) >= at - lease.ttlMs * RECENT;
}
