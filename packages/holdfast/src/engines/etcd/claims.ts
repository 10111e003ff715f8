import type { Claim, Gone } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { CallOptions, EtcdClient } from "./client.js";
import { isLeaseGone } from "./failure.js";
import { type Keys, markerOf, markersIn, type Room } from "./keys.js";
import type { Leases, SharedLease } from "./leases.js";
import { type Entry, entryOf, Line, type Member, readEntry } from "./line.js";
import {
  absent,
  countOf,
  created,
  del,
  empty,
  found,
  get,
  type KeyValue,
  nested,
  type Op,
  oldestIs,
  put,
  type RawTxn,
  range,
  type Txn,
  unchanged,
} from "./requests.js";

/** A waiter's key ends so soon after its last heartbeat, and no later: the next one has its turn. */
const WAITER_MS = 3_000;
/** An exclusive waiter need not see the whole line: who holds, and who is next before it. */
const FIRST = 64;
const NEAREST = 8;
/** A lease is good to put a grant on for so much of its life. */
const FRESH = 1 / 3;
const MOST_CHANGES = 4;

export type Verdict =
  | { readonly kind: "holds"; readonly self: KeyValue; readonly entry: Entry }
  | Waits
  | { readonly kind: "busy"; readonly holders: readonly Member[] }
  | Gone;

export interface Waits {
  readonly kind: "waits";
  readonly self: KeyValue;
  /** Null where the line is too long to be read for it. */
  readonly position: number | null;
  readonly holders: readonly Member[];
  /** Keys whose end may be its turn; null where they are as before. */
  readonly before: readonly string[] | null;
  /** The one of them that is all it waits for, where nothing has to be asked then. */
  readonly lastBefore: string | null;
}

/** The claims of one engine, each decided by a transaction. */
export class Claims {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leases: Leases;
  readonly #engineId: string;

  constructor(client: EtcdClient, keys: Keys, leases: Leases, engineId: string) {
    this.#client = client;
    this.#keys = keys;
    this.#leases = leases;
    this.#engineId = engineId;
  }

  /** Keeps alive what a waiter of this ttl hangs on; gives the lease. */
  waiterLease(ttlMs: number, part: number, deadline: number): Promise<SharedLease> {
    return this.#leases.ready(Math.min(ttlMs, WAITER_MS), part, deadline);
  }

  tryAcquire(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.onLeases(claim, deadline, async (lives): Promise<Verdict> => {
      if (isOver()) return { kind: "gone", why: "unknown" };
      const { room, key, take, tombstone } = this.#places(claim, lives);
      const first = await this.#txn(
        {
          compare: [absent(tombstone), empty(room)],
          success: take,
          failure: [get(tombstone), get(key), ...this.#look(room, claim.mode)],
        },
        deadline,
      );
      if (first.succeeded) return holding(first, claim, key, lives, this.#engineId);
      if (found(first, 0).length > 0) return { kind: "gone", why: "unknown" };
      const [own] = found(first, 1);
      if (own !== undefined) return this.#again(claim.resource, own, false, deadline);
      const { line } = await this.#seen(room, first, 2, deadline);
      line.refuseOtherLimit(claim, key);
      if (!line.admits(claim)) return { kind: "busy", holders: line.holders };
      return this.#join(claim, deadline);
    });
  }

  enqueue(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.onLeases(claim, deadline, async (lives): Promise<Verdict> => {
      const { room, key, take, tombstone } = this.#places(claim, lives);
      const waiting = await this.waiterLease(claim.ttlMs, FRESH, deadline);
      if (isOver()) return { kind: "gone", why: "unknown" };
      const value = JSON.stringify(entryOf(claim, this.#engineId, false));
      const standInLine = nested({
        compare: [absent(tombstone), absent(key)],
        success: [put(key, value, waiting.id), ...this.#look(room, claim.mode)],
        failure: [get(tombstone), get(key)],
      });
      const answer = await this.#txn(
        { compare: [absent(tombstone), empty(room)], success: take, failure: [standInLine] },
        deadline,
      );
      if (answer.succeeded) return holding(answer, claim, key, lives, this.#engineId);
      const inner: RawTxn = answer.responses?.[0]?.response_txn ?? { header: {} };
      if (!inner.succeeded) {
        const [own] = found(inner, 1);
        if (found(inner, 0).length > 0 || own === undefined)
          return { kind: "gone", why: "unknown" };
        return this.#again(claim.resource, own, true, deadline);
      }
      const revision = BigInt(answer.header.revision ?? 0);
      const self = { key, value, created: revision, modified: String(revision), lease: waiting.id };
      const seen = await this.#seen(room, inner, 1, deadline, true);
      try {
        seen.line.refuseOtherLimit(claim, key);
      } catch (error) {
        await this.remove(self, deadline);
        throw error;
      }
      return this.#stand(claim.resource, self, seen, deadline);
    });
  }

  /**
   * Something before this waiter has ended. If that was all there was, the same transaction that finds
   * it so tells the waiter: a hand-over is one notice and one transaction.
   */
  look(resource: string, self: KeyValue, deadline: number): Promise<Verdict> {
    const entry = readEntry(self)!;
    const room = this.#keys.room(resource);
    return this.onLeases(entry, deadline, async (lives) => {
      const alone = [unchanged(self), oldestIs(room, self.created), empty(markersIn(room))];
      const answer = await this.#txn(
        {
          compare: entry.mode === "exclusive" ? alone : [absent(self.key)],
          success: entry.mode === "exclusive" ? told(self, entry, lives) : [],
          failure: [get(self.key), ...this.#look(room, entry.mode, self.created)],
        },
        deadline,
      );
      if (answer.succeeded) {
        if (entry.mode === "shared") return { kind: "gone", why: "unknown" };
        return tellAnswer(answer, self, entry, lives);
      }
      const [own] = found(answer, 0);
      if (own === undefined) return { kind: "gone", why: "unknown" };
      const seen = await this.#seen(room, answer, 1, deadline);
      return this.#stand(resource, own, seen, deadline);
    });
  }

  /** Tells a waiter that it holds, so that from now on it is a holder for good. */
  async tell(self: KeyValue, deadline: number): Promise<Verdict> {
    let current = self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const entry = readEntry(current)!;
      if (entry.revoked) return { kind: "gone", why: "revoked" };
      if (entry.claimed) return { kind: "holds", self: current, entry };
      const answer = await this.onLeases(entry, deadline, async (lives) => {
        const txn = await this.#txn(
          {
            compare: [unchanged(current)],
            success: told(current, entry, lives),
            failure: [get(current.key)],
          },
          deadline,
        );
        return txn.succeeded ? tellAnswer(txn, current, entry, lives) : (found(txn, 0)[0] ?? null);
      });
      if (answer === null) return { kind: "gone", why: "unknown" };
      if ("kind" in answer) return answer;
      current = answer;
    }
    throw new EngineError("a waiter's key changes faster than it can be read", {
      effect: "none",
      retryable: true,
    });
  }

  /** Takes a waiter or a grant that is not wanted out of the line, with its mark. */
  async remove(self: Pick<KeyValue, "key" | "created">, deadline: number): Promise<void> {
    const success = [del(self.key), del(markerOf(self.key))];
    await this.#txn({ compare: [created(self.key, self.created)], success, failure: [] }, deadline);
  }

  /** The line of a resource, all of it. */
  async line(resource: string, deadline: number): Promise<Line> {
    return this.#whole(this.#keys.room(resource), deadline);
  }

  /** What hangs on which lease: the grant's own, and with a lock-delay its mark's. */
  async lives(
    { ttlMs, lockDelayMs }: Pick<Entry, "ttlMs" | "lockDelayMs">,
    part: number,
    deadline: number,
  ): Promise<Lives> {
    const lifeMs = ttlMs + lockDelayMs;
    const [lease, marker] = await Promise.all([
      this.#leases.ready(ttlMs, part, deadline),
      // The grant counts from the older of the two, so the mark's must be as fresh, not as a part.
      lockDelayMs > 0 ? this.#leases.ready(lifeMs, (part * ttlMs) / lifeMs, deadline) : null,
    ]);
    return { lease, marker };
  }

  /** The resource looked free for this claim; whether it was is seen once its key is there. */
  async #join(claim: Claim, deadline: number): Promise<Verdict> {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const tombstone = this.#keys.tombstone(grantId);
    const waiting = await this.waiterLease(claim.ttlMs, FRESH, deadline);
    const value = JSON.stringify(entryOf(claim, this.#engineId, false));
    const success = [put(key, value, waiting.id)];
    // Where the same claim, sent twice, has come first, its key is found here as well.
    const answer = await this.#txn(
      { compare: [absent(tombstone), absent(key)], success, failure: [] },
      deadline,
    );
    const at = {
      created: BigInt(answer.header.revision ?? 0),
      modified: answer.header.revision ?? "0",
    };
    const verdict = await this.look(resource, { key, value, lease: waiting.id, ...at }, deadline);
    if (verdict.kind !== "waits") return verdict;
    await this.remove(verdict.self, deadline);
    return { kind: "busy", holders: verdict.holders };
  }

  /** A claim that was sent before: it holds, or it keeps its place. */
  async #again(
    resource: string,
    own: KeyValue,
    inLine: boolean,
    deadline: number,
  ): Promise<Verdict> {
    const entry = readEntry(own)!;
    if (entry.revoked) return { kind: "gone", why: "revoked" };
    if (entry.claimed) return { kind: "holds", self: own, entry };
    const verdict = await this.look(resource, own, deadline);
    if (verdict.kind !== "waits" || inLine) return verdict;
    return { kind: "busy", holders: verdict.holders };
  }

  async #stand(resource: string, self: KeyValue, seen: Seen, deadline: number): Promise<Verdict> {
    const { line, complete, nearest, behind } = seen;
    const entry = readEntry(self)!;
    if (entry.revoked) return { kind: "gone", why: "revoked" };
    const member = line.find(self.key);
    if (entry.claimed || member?.holds) return this.tell(self, deadline);
    const { holders } = line;
    const lastBefore = line.lastBefore(self);
    const waits = { kind: "waits", self, holders, lastBefore } as const;
    if (member !== undefined) {
      return { ...waits, position: line.waiters.indexOf(member), before: line.before(self) };
    }
    if (!complete && nearest.length > 0) {
      const position = behind === null ? null : behind - holders.length;
      return { ...waits, position, before: [nearest[0]!.key] };
    }
    const whole = await this.#whole(this.#keys.room(resource), deadline);
    return { ...waits, position: null, before: whole.before(self) };
  }

  #places(claim: Claim, lives: Lives) {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const value = JSON.stringify(entryOf(claim, this.#engineId, true));
    return {
      room: this.#keys.room(resource),
      key,
      tombstone: this.#keys.tombstone(grantId),
      take: puts(key, value, lives),
    };
  }

  #look(room: Room, mode: Entry["mode"], createdBefore?: bigint): Op[] {
    if (mode === "shared") return [range(room, { order: "ASCEND" })];
    // Without createdBefore, the last of all has just come.
    return [
      range(room, { order: "ASCEND", limit: FIRST }),
      range(markersIn(room)),
      range(room, {
        order: "DESCEND",
        limit: NEAREST,
        ...(createdBefore === undefined ? {} : { createdBefore }),
      }),
    ];
  }

  async #seen(
    room: Room,
    txn: RawTxn,
    at: number,
    deadline: number,
    isNewest = false,
  ): Promise<Seen> {
    const first = found(txn, at);
    const marks = found(txn, at + 1);
    const behind = isNewest ? countOf(txn, at) - marks.length - 1 : null;
    const complete = first.length === countOf(txn, at);
    const line = new Line([...first, ...marks]);
    // A mark whose grant is not among the first need not be an orphan.
    if (!complete && line.orphans.length > 0) {
      return { line: await this.#whole(room, deadline), complete: true, nearest: [], behind };
    }
    const nearest = new Line(found(txn, at + 2)).members.toReversed();
    return { line, complete, nearest, behind };
  }

  async #whole(room: Room, deadline: number): Promise<Line> {
    const success = [range(room, { order: "ASCEND" })];
    return new Line(found(await this.#txn({ compare: [], success, failure: [] }, deadline), 0));
  }

  /** A lease that the server has let expire is replaced, once; nothing was done until then. */
  async onLeases<T>(
    of: Pick<Entry, "ttlMs" | "lockDelayMs">,
    deadline: number,
    act: (lives: Lives) => Promise<T>,
  ): Promise<T> {
    const lives = await this.lives(of, FRESH, deadline);
    try {
      return await act(lives);
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      this.#leases.forgetAll();
      return act(await this.lives(of, FRESH, deadline));
    }
  }

  #txn(txn: Txn, deadline: number): Promise<RawTxn> {
    // Every transaction here finds its own work if it comes twice.
    const options: CallOptions = { deadline, repeatable: true };
    return this.#client.kv<RawTxn>("txn", txn, options);
  }
}

export interface Lives {
  readonly lease: SharedLease;
  readonly marker: SharedLease | null;
}

interface Seen {
  readonly line: Line;
  readonly complete: boolean;
  readonly nearest: readonly Member[];
  /** How many the newest in the room stands behind; null where somebody else asks. */
  readonly behind: number | null;
}

export function puts(key: string, value: string | null, { lease, marker }: Lives): Op[] {
  const mark = marker === null ? [] : [put(markerOf(key), "", marker.id)];
  return [put(key, value, lease.id), ...mark];
}

function told(self: KeyValue, entry: Entry, lives: Lives): Op[] {
  return puts(self.key, JSON.stringify({ ...entry, claimed: true }), lives);
}

function tellAnswer(answer: RawTxn, self: KeyValue, entry: Entry, lives: Lives): Verdict {
  const claimed = { ...entry, claimed: true };
  const modified = answer.header.revision ?? "0";
  const kept = { ...self, value: JSON.stringify(claimed), modified, lease: lives.lease.id };
  return { kind: "holds", self: kept, entry: claimed };
}

function holding(answer: RawTxn, claim: Claim, key: string, { lease }: Lives, engine: string) {
  const entry = entryOf(claim, engine, true);
  const revision = answer.header.revision ?? "0";
  const at = { created: BigInt(revision), modified: revision, lease: lease.id };
  return { kind: "holds", self: { key, value: JSON.stringify(entry), ...at }, entry } as const;
}
