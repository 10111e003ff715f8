import type { Claim, Gone } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import type { CallOptions, EtcdClient } from "../client/client.js";
import {
  absent,
  count,
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
  type Txn,
  unchanged,
} from "../client/requests.js";
import { type LeasePair, type LeasePool, puts } from "../leases/lease-pool.js";
import { type Keys, markerOf, markersIn } from "./keys.js";
import {
  type Ahead,
  type Entry,
  entryOf,
  type Member,
  type Queue,
  readEntry,
  writeEntry,
} from "./queue.js";
import type { QueueReader, QueueSnapshot } from "./queue-reader.js";

const MOST_CHANGES = 4;
/** At most this many holders are read by key. */
export const MOST_HOLDERS = 16;

export type Verdict =
  | Holds
  | Waits
  | { readonly kind: "busy"; readonly holders: readonly Member[] }
  | Gone;

export interface Holds {
  readonly kind: "holds";
  readonly self: KeyValue;
  readonly entry: Entry;
  /** The lease of its mark, if this call has just put one. */
  readonly marker: string | null;
}

export interface Waits {
  readonly kind: "waits";
  readonly self: KeyValue;
  /** Null where the queue is too long to be read for this waiter. */
  readonly position: number | null;
  readonly holders: readonly Member[];
  /** Keys whose end may give it its turn; null where they have not changed. */
  readonly before: readonly Ahead[] | null;
  /** The only key it waits for, if its end is the turn without asking the server. */
  readonly lastBefore: Ahead | null;
  /** When the queue was read; now if it is left out. */
  readonly readAt?: number;
}

/** A waiter of ours in a long queue: a claim that comes after it need not read the queue. */
export interface Hint {
  readonly self: Ahead;
  readonly holders: readonly Member[];
  readonly readAt: number;
}

/** The claims of one engine, each decided by a transaction. */
export class Claims {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leasePool: LeasePool;
  readonly #queueReader: QueueReader;
  readonly #engineId: string;
  /** Our last waiter before a claim, if it waits far behind. */
  hintFor: (claim: Claim) => Hint | null = () => null;

  constructor(
    client: EtcdClient,
    keys: Keys,
    leasePool: LeasePool,
    queueReader: QueueReader,
    engineId: string,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#leasePool = leasePool;
    this.#queueReader = queueReader;
    this.#engineId = engineId;
  }

  tryAcquire(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.#leasePool.on(claim, deadline, async (pair): Promise<Verdict> => {
      if (isOver()) return { kind: "gone", why: "unknown" };
      const { keyRange, key, take, tombstone } = this.#operationsFor(claim, pair);
      const first = await this.#txn(
        {
          compare: [absent(tombstone), empty(keyRange)],
          success: take,
          failure: [get(tombstone), get(key), ...this.#queueReader.look(keyRange, claim)],
        },
        deadline,
      );
      if (first.succeeded) return holding(first, claim, key, pair, this.#engineId);
      if (found(first, 0).length > 0) return { kind: "gone", why: "unknown" };
      const [own] = found(first, 1);
      if (own !== undefined) return this.#again(claim.resource, own, false, deadline);
      const { queue } = await this.#queueReader.snapshot(keyRange, first, 2, deadline);
      queue.refuseOtherLimit(claim, key);
      if (!queue.admits(claim)) return { kind: "busy", holders: queue.holders };
      return this.#join(claim, deadline);
    });
  }

  enqueue(claim: Claim, deadline: number, isOver: () => boolean): Promise<Verdict> {
    return this.#leasePool.on(claim, deadline, async (pair): Promise<Verdict> => {
      const { keyRange, key, take, tombstone } = this.#operationsFor(claim, pair);
      const waiting = await this.#leasePool.freshOfWaiter(claim.ttlMs, deadline);
      if (isOver()) return { kind: "gone", why: "unknown" };
      const hint = this.hintFor(claim);
      if (hint !== null) return this.#enqueueBehind(claim, hint, waiting.id, deadline);
      const value = writeEntry(entryOf(claim, this.#engineId, false));
      const enterQueue = nested({
        compare: [absent(tombstone), absent(key)],
        success: [put(key, value, waiting.id), ...this.#queueReader.look(keyRange, claim)],
        failure: [get(tombstone), get(key)],
      });
      const answer = await this.#txn(
        { compare: [absent(tombstone), empty(keyRange)], success: take, failure: [enterQueue] },
        deadline,
      );
      if (answer.succeeded) return holding(answer, claim, key, pair, this.#engineId);
      const inner: RawTxn = answer.responses?.[0]?.response_txn ?? { header: {} };
      if (!inner.succeeded) return this.#enqueuedBefore(claim, inner, waiting.id, deadline);
      const revision = BigInt(answer.header.revision ?? 0);
      const self = { key, value, created: revision, modified: String(revision), lease: waiting.id };
      const snapshot = await this.#queueReader.snapshot(keyRange, inner, 1, deadline, true);
      await this.#refuseOtherLimit(snapshot.queue, claim, self, deadline);
      return this.#stand(claim.resource, self, snapshot, deadline);
    });
  }

  /**
   * Enters a queue that is too long for each claim to read, behind a waiter of ours. While that waiter
   * exists and was not let in, nobody behind it is let in. The known holders are read by key.
   */
  async #enqueueBehind(
    claim: Claim,
    { self: ahead, holders, readAt }: Hint,
    lease: string,
    deadline: number,
  ): Promise<Verdict> {
    const { resource, grantId } = claim;
    const [keyRange, key] = [this.#keys.rangeOf(resource), this.#keys.entry(resource, grantId)];
    const tombstone = this.#keys.tombstone(grantId);
    const value = writeEntry(entryOf(claim, this.#engineId, false));
    const known = holders.slice(0, MOST_HOLDERS);
    const asked = [get(ahead.key), count(keyRange), count(markersIn(keyRange))];
    const success = [put(key, value, lease), ...asked, ...known.map((one) => get(one.key))];
    const answer = await this.#txn(
      {
        compare: [absent(tombstone), absent(key)],
        success,
        failure: [get(tombstone), get(key)],
      },
      deadline,
    );
    if (!answer.succeeded) return this.#enqueuedBefore(claim, answer, lease, deadline);
    const revision = answer.header.revision ?? "0";
    const self = { key, value, created: BigInt(revision), modified: revision, lease };
    const still = known.filter((one, i) => found(answer, 4 + i)[0]?.created === one.created);
    const [before] = found(answer, 1);
    const waits = before?.created === ahead.created && readEntry(before)?.claimed === false;
    if (waits && still.length > 0) {
      const position = countOf(answer, 2) - countOf(answer, 3) - 1 - still.length;
      const place = { position, holders: still, before: [ahead], lastBefore: null, readAt };
      return { kind: "waits", self, ...place };
    }
    if (claim.mode === "shared") {
      const queue = await this.#queueReader.queue(resource, deadline);
      await this.#refuseOtherLimit(queue, claim, self, deadline);
    }
    return this.look(resource, self, deadline);
  }

  /** The claim was sent before: it finds its own key or its tombstone. */
  async #enqueuedBefore(
    claim: Claim,
    answer: RawTxn,
    lease: string,
    deadline: number,
  ): Promise<Verdict> {
    const [own] = found(answer, 1);
    if (found(answer, 0).length > 0 || own === undefined) return { kind: "gone", why: "unknown" };
    const again = await this.#again(claim.resource, own, true, deadline);
    if (again.kind !== "waits") return again;
    // The repeated claim counts as a heartbeat, so its place is kept alive.
    return { ...again, self: await this.hang(again.self, lease, deadline) };
  }

  async #refuseOtherLimit(
    queue: Queue,
    claim: Claim,
    self: KeyValue,
    deadline: number,
  ): Promise<void> {
    try {
      queue.refuseOtherLimit(claim, self.key);
    } catch (error) {
      await this.remove(self, deadline);
      throw error;
    }
  }

  /**
   * A key before this waiter has ended. If it was the only one, the transaction that finds this out also
   * marks the waiter as a holder: a hand-over is one notification and one transaction.
   */
  look(resource: string, self: KeyValue, deadline: number): Promise<Verdict> {
    const entry = readEntry(self)!;
    const keyRange = this.#keys.rangeOf(resource);
    return this.#leasePool.on(entry, deadline, async (pair) => {
      const alone = [unchanged(self), oldestIs(keyRange, self.created), empty(markersIn(keyRange))];
      const answer = await this.#txn(
        {
          compare: entry.mode === "exclusive" ? alone : [absent(self.key)],
          success: entry.mode === "exclusive" ? told(self, entry, pair) : [],
          failure: [get(self.key), ...this.#queueReader.look(keyRange, entry, self.created)],
        },
        deadline,
      );
      if (answer.succeeded) {
        if (entry.mode === "shared") return { kind: "gone", why: "unknown" };
        return tellAnswer(answer, self, entry, pair);
      }
      const [own] = found(answer, 0);
      if (own === undefined) return { kind: "gone", why: "unknown" };
      const snapshot = await this.#queueReader.snapshot(keyRange, answer, 1, deadline);
      return this.#stand(resource, own, snapshot, deadline);
    });
  }

  /** Marks a waiter as a holder in its key, which makes it a holder for good. */
  async tell(self: KeyValue, deadline: number): Promise<Verdict> {
    let current = self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const entry = readEntry(current)!;
      const over = isOver(entry);
      if (over !== null) return over;
      if (entry.claimed) return { kind: "holds", self: current, entry, marker: null };
      const answer = await this.#leasePool.on(entry, deadline, async (pair) => {
        const txn = await this.#txn(
          {
            compare: [unchanged(current)],
            success: told(current, entry, pair),
            failure: [get(current.key)],
          },
          deadline,
        );
        return txn.succeeded ? tellAnswer(txn, current, entry, pair) : (found(txn, 0)[0] ?? null);
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
   * Moves a waiter's key to the lease that is kept alive, if it is on another one, which will end. If the
   * key has changed, the next heartbeat sees that.
   */
  async hang(self: KeyValue, lease: string, deadline: number): Promise<KeyValue> {
    if (self.lease === lease) return self;
    const success = [put(self.key, null, lease)];
    const answer = await this.#txn({ compare: [unchanged(self)], success, failure: [] }, deadline);
    return answer.succeeded ? { ...self, modified: answer.header.revision ?? "0", lease } : self;
  }

  /** Deletes the key and the mark of a waiter or a grant that nobody wants. */
  async remove(self: Pick<KeyValue, "key" | "created">, deadline: number): Promise<void> {
    const success = [del(self.key), del(markerOf(self.key))];
    await this.#txn({ compare: [created(self.key, self.created)], success, failure: [] }, deadline);
  }

  /** The queue admits this claim. Whether it still does is known once the key exists. */
  async #join(claim: Claim, deadline: number): Promise<Verdict> {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const tombstone = this.#keys.tombstone(grantId);
    const waiting = await this.#leasePool.freshOfWaiter(claim.ttlMs, deadline);
    const value = writeEntry(entryOf(claim, this.#engineId, false));
    const success = [put(key, value, waiting.id)];
    // If a copy of the same claim arrived first, look() finds its key.
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

  /** The claim was sent before: it holds, or it keeps its place. */
  async #again(
    resource: string,
    own: KeyValue,
    inQueue: boolean,
    deadline: number,
  ): Promise<Verdict> {
    const entry = readEntry(own)!;
    const over = isOver(entry);
    if (over !== null) return over;
    if (entry.claimed) return { kind: "holds", self: own, entry, marker: null };
    const verdict = await this.look(resource, own, deadline);
    if (verdict.kind !== "waits" || inQueue) return verdict;
    return { kind: "busy", holders: verdict.holders };
  }

  async #stand(
    resource: string,
    self: KeyValue,
    snapshot: QueueSnapshot,
    deadline: number,
  ): Promise<Verdict> {
    const { queue, complete, nearest, behind } = snapshot;
    const entry = readEntry(self)!;
    const over = isOver(entry);
    if (over !== null) return over;
    const member = queue.find(self.key);
    if (entry.claimed || member?.holds) return this.tell(self, deadline);
    const { holders } = queue;
    const lastBefore = queue.lastBefore(self);
    const waits = { kind: "waits", self, holders, lastBefore } as const;
    if (member !== undefined) {
      return { ...waits, position: queue.waiters.indexOf(member), before: queue.before(self) };
    }
    const ahead = nearest.filter(({ created }) => created < self.created);
    if (!complete && ahead.length > 0) {
      const position = behind === null ? null : behind - holders.length;
      const many = entry.mode === "exclusive" ? 1 : (entry.limit ?? 1);
      return { ...waits, position, before: ahead.slice(0, many) };
    }
    const whole = await this.#queueReader.queue(resource, deadline);
    return { ...waits, position: null, before: whole.before(self) };
  }

  #operationsFor(claim: Claim, pair: LeasePair) {
    const { resource, grantId } = claim;
    const key = this.#keys.entry(resource, grantId);
    const value = writeEntry(entryOf(claim, this.#engineId, true));
    return {
      keyRange: this.#keys.rangeOf(resource),
      key,
      tombstone: this.#keys.tombstone(grantId),
      take: puts(key, value, pair),
    };
  }

  #txn(txn: Txn, deadline: number): Promise<RawTxn> {
    // Every transaction here is safe to repeat: its second copy finds the work of the first.
    const options: CallOptions = { deadline, repeatable: true };
    return this.#client.txn(txn, options);
  }
}

/** A grant as this process knows it. */
export function holdsOf({ self, marker }: { self: KeyValue; marker: string | null }): Holds {
  return { kind: "holds", self, entry: readEntry(self)!, marker };
}

/** The answer for a claim that was revoked or left behind; null for others. */
function isOver({ revoked, left }: Entry): Gone | null {
  if (revoked) return { kind: "gone", why: "revoked" };
  return left ? { kind: "gone", why: "unknown" } : null;
}

function told(self: KeyValue, entry: Entry, pair: LeasePair): Op[] {
  return puts(self.key, writeEntry({ ...entry, claimed: true }), pair);
}

function tellAnswer(answer: RawTxn, self: KeyValue, entry: Entry, pair: LeasePair): Verdict {
  const claimed = { ...entry, claimed: true };
  const modified = answer.header.revision ?? "0";
  const kept = { ...self, value: writeEntry(claimed), modified, lease: pair.lease.id };
  return { kind: "holds", self: kept, entry: claimed, marker: pair.marker?.id ?? null };
}

function holding(
  answer: RawTxn,
  claim: Claim,
  key: string,
  pair: LeasePair,
  engine: string,
): Holds {
  const entry = entryOf(claim, engine, true);
  const revision = answer.header.revision ?? "0";
  const at = { created: BigInt(revision), modified: revision, lease: pair.lease.id };
  const self = { key, value: writeEntry(entry), ...at };
  return { kind: "holds", self, entry, marker: pair.marker?.id ?? null };
}
