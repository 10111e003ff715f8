import type { Claim, Gone } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { CallOptions, EtcdClient } from "./client.js";
import { type Keys, markerOf, markersIn } from "./keys.js";
import { type Ahead, type Entry, entryOf, type Member, readEntry, writeEntry } from "./line.js";
import { type Life, type Lives, puts } from "./lives.js";
import type { Readings, Seen } from "./readings.js";
import {
  absent,
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
  type Txn,
  unchanged,
} from "./requests.js";

const MOST_CHANGES = 4;

export type Verdict =
  | Holds
  | Waits
  | { readonly kind: "busy"; readonly holders: readonly Member[] }
  | Gone;

export interface Holds {
  readonly kind: "holds";
  readonly self: KeyValue;
  readonly entry: Entry;
  /** The lease of its mark, where it has one and it was put just now. */
  readonly marker: string | null;
}

export interface Waits {
  readonly kind: "waits";
  readonly self: KeyValue;
  /** Null where the line is too long to be read for it. */
  readonly position: number | null;
  readonly holders: readonly Member[];
  /** Keys whose end may be its turn; null where they are as before. */
  readonly before: readonly Ahead[] | null;
  /** The one of them that is all it waits for, where nothing has to be asked then. */
  readonly lastBefore: Ahead | null;
}

/** The claims of one engine, each decided by a transaction. */
export class Claims {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #lives: Lives;
  readonly #readings: Readings;
  readonly #engineId: string;

  constructor(client: EtcdClient, keys: Keys, lives: Lives, readings: Readings, engineId: string) {
    this.#client = client;
    this.#keys = keys;
    this.#lives = lives;
    this.#readings = readings;
    this.#engineId = engineId;
  }

  tryAcquire(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.#lives.on(claim, deadline, async (life): Promise<Verdict> => {
      if (isOver()) return { kind: "gone", why: "unknown" };
      const { room, key, take, tombstone } = this.#places(claim, life);
      const first = await this.#txn(
        {
          compare: [absent(tombstone), empty(room)],
          success: take,
          failure: [get(tombstone), get(key), ...this.#readings.look(room, claim.mode)],
        },
        deadline,
      );
      if (first.succeeded) return holding(first, claim, key, life, this.#engineId);
      if (found(first, 0).length > 0) return { kind: "gone", why: "unknown" };
      const [own] = found(first, 1);
      if (own !== undefined) return this.#again(claim.resource, own, false, deadline);
      const { line } = await this.#readings.seen(room, first, 2, deadline);
      line.refuseOtherLimit(claim, key);
      if (!line.admits(claim)) return { kind: "busy", holders: line.holders };
      return this.#join(claim, deadline);
    });
  }

  enqueue(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.#lives.on(claim, deadline, async (life): Promise<Verdict> => {
      const { room, key, take, tombstone } = this.#places(claim, life);
      const waiting = await this.#lives.freshOfWaiter(claim.ttlMs, deadline);
      if (isOver()) return { kind: "gone", why: "unknown" };
      const value = writeEntry(entryOf(claim, this.#engineId, false));
      const standInLine = nested({
        compare: [absent(tombstone), absent(key)],
        success: [put(key, value, waiting.id), ...this.#readings.look(room, claim.mode)],
        failure: [get(tombstone), get(key)],
      });
      const answer = await this.#txn(
        { compare: [absent(tombstone), empty(room)], success: take, failure: [standInLine] },
        deadline,
      );
      if (answer.succeeded) return holding(answer, claim, key, life, this.#engineId);
      const inner: RawTxn = answer.responses?.[0]?.response_txn ?? { header: {} };
      if (!inner.succeeded) {
        const [own] = found(inner, 1);
        if (found(inner, 0).length > 0 || own === undefined)
          return { kind: "gone", why: "unknown" };
        const again = await this.#again(claim.resource, own, true, deadline);
        if (again.kind !== "waits") return again;
        // It was heard of, as by a heartbeat: its place lives on.
        return { ...again, self: await this.hang(again.self, waiting.id, deadline) };
      }
      const revision = BigInt(answer.header.revision ?? 0);
      const self = { key, value, created: revision, modified: String(revision), lease: waiting.id };
      const seen = await this.#readings.seen(room, inner, 1, deadline, true);
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
    return this.#lives.on(entry, deadline, async (life) => {
      const alone = [unchanged(self), oldestIs(room, self.created), empty(markersIn(room))];
      const answer = await this.#txn(
        {
          compare: entry.mode === "exclusive" ? alone : [absent(self.key)],
          success: entry.mode === "exclusive" ? told(self, entry, life) : [],
          failure: [get(self.key), ...this.#readings.look(room, entry.mode, self.created)],
        },
        deadline,
      );
      if (answer.succeeded) {
        if (entry.mode === "shared") return { kind: "gone", why: "unknown" };
        return tellAnswer(answer, self, entry, life);
      }
      const [own] = found(answer, 0);
      if (own === undefined) return { kind: "gone", why: "unknown" };
      const seen = await this.#readings.seen(room, answer, 1, deadline);
      return this.#stand(resource, own, seen, deadline);
    });
  }

  /** Tells a waiter that it holds, so that from now on it is a holder for good. */
  async tell(self: KeyValue, deadline: number): Promise<Verdict> {
    let current = self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const entry = readEntry(current)!;
      const over = isOver(entry);
      if (over !== null) return over;
      if (entry.claimed) return { kind: "holds", self: current, entry, marker: null };
      const answer = await this.#lives.on(entry, deadline, async (life) => {
        const txn = await this.#txn(
          {
            compare: [unchanged(current)],
            success: told(current, entry, life),
            failure: [get(current.key)],
          },
          deadline,
        );
        return txn.succeeded ? tellAnswer(txn, current, entry, life) : (found(txn, 0)[0] ?? null);
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

  /**
   * Hangs a waiter on the lease that is kept alive, if it hangs on another one, which ends. Should the
   * key have changed meanwhile, its next heartbeat sees that.
   */
  async hang(self: KeyValue, lease: string, deadline: number): Promise<KeyValue> {
    if (self.lease === lease) return self;
    const success = [put(self.key, null, lease)];
    const answer = await this.#txn({ compare: [unchanged(self)], success, failure: [] }, deadline);
    return answer.succeeded ? { ...self, modified: answer.header.revision ?? "0", lease } : self;
  }

  /** Takes a waiter or a grant that is not wanted out of the line, with its mark. */
  async remove(self: Pick<KeyValue, "key" | "created">, deadline: number): Promise<void> {
    const success = [del(self.key), del(markerOf(self.key))];
    await this.#txn({ compare: [created(self.key, self.created)], success, failure: [] }, deadline);
  }

  /** The resource looked free for this claim; whether it was is seen once its key is there. */
  async #join(claim: Claim, deadline: number): Promise<Verdict> {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const tombstone = this.#keys.tombstone(grantId);
    const waiting = await this.#lives.freshOfWaiter(claim.ttlMs, deadline);
    const value = writeEntry(entryOf(claim, this.#engineId, false));
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
    const over = isOver(entry);
    if (over !== null) return over;
    if (entry.claimed) return { kind: "holds", self: own, entry, marker: null };
    const verdict = await this.look(resource, own, deadline);
    if (verdict.kind !== "waits" || inLine) return verdict;
    return { kind: "busy", holders: verdict.holders };
  }

  async #stand(resource: string, self: KeyValue, seen: Seen, deadline: number): Promise<Verdict> {
    const { line, complete, nearest, behind } = seen;
    const entry = readEntry(self)!;
    const over = isOver(entry);
    if (over !== null) return over;
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
      return { ...waits, position, before: [nearest[0]!] };
    }
    const whole = await this.#readings.line(resource, deadline);
    return { ...waits, position: null, before: whole.before(self) };
  }

  #places(claim: Claim, life: Life) {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const value = writeEntry(entryOf(claim, this.#engineId, true));
    return {
      room: this.#keys.room(resource),
      key,
      tombstone: this.#keys.tombstone(grantId),
      take: puts(key, value, life),
    };
  }

  #txn(txn: Txn, deadline: number): Promise<RawTxn> {
    // Every transaction here finds its own work if it comes twice.
    const options: CallOptions = { deadline, repeatable: true };
    return this.#client.txn(txn, options);
  }
}

/** A grant as this process knows it. */
export function holdsOf({ self, marker }: { self: KeyValue; marker: string | null }): Holds {
  return { kind: "holds", self, entry: readEntry(self)!, marker };
}

/** Why a claim that holds is answered with gone: it is nobody's any more. */
function isOver({ revoked, left }: Entry): Gone | null {
  if (revoked) return { kind: "gone", why: "revoked" };
  return left ? { kind: "gone", why: "unknown" } : null;
}

function told(self: KeyValue, entry: Entry, life: Life): Op[] {
  return puts(self.key, writeEntry({ ...entry, claimed: true }), life);
}

function tellAnswer(answer: RawTxn, self: KeyValue, entry: Entry, life: Life): Verdict {
  const claimed = { ...entry, claimed: true };
  const modified = answer.header.revision ?? "0";
  const kept = { ...self, value: writeEntry(claimed), modified, lease: life.lease.id };
  return { kind: "holds", self: kept, entry: claimed, marker: life.marker?.id ?? null };
}

function holding(answer: RawTxn, claim: Claim, key: string, life: Life, engine: string): Holds {
  const entry = entryOf(claim, engine, true);
  const revision = answer.header.revision ?? "0";
  const at = { created: BigInt(revision), modified: revision, lease: life.lease.id };
  const self = { key, value: writeEntry(entry), ...at };
  return { kind: "holds", self, entry, marker: life.marker?.id ?? null };
}
