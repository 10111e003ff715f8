import { EngineError } from "../../../errors.js";
import type { EtcdClient } from "../client/client.js";
import {
  absent,
  empty,
  found,
  get,
  type KeyValue,
  type Op,
  oldestIs,
  type RawTxn,
  unchanged,
} from "../client/requests.js";
import { type LeasePair, type LeasePool, puts } from "../leases/lease-pool.js";
import { type KeyRecord, readRecord, writeRecord } from "./key-record.js";
import { type Keys, markersIn } from "./keys.js";
import { holdsAfter, overAnswer, type QueueAnswer } from "./queue-answer.js";
import type { QueueReader, QueueSnapshot } from "./queue-reader.js";
import type { WaiterKeys } from "./waiter-keys.js";

const MOST_CHANGES = 4;

/**
 * Decides whether it is the turn of a claim that has a key. A waiter whose turn it is becomes a
 * holder when its key says so. Every transaction here is safe to repeat: its second copy finds the
 * work of the first.
 */
export class QueueTurns {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leasePool: LeasePool;
  readonly #queueReader: QueueReader;
  readonly #waiterKeys: WaiterKeys;

  constructor(
    client: EtcdClient,
    keys: Keys,
    leasePool: LeasePool,
    queueReader: QueueReader,
    waiterKeys: WaiterKeys,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#leasePool = leasePool;
    this.#queueReader = queueReader;
    this.#waiterKeys = waiterKeys;
  }

  /**
   * A key before this waiter has ended. If it was the only one, the transaction that finds this out
   * also marks the waiter as a holder: a hand-over is one notification and one transaction.
   */
  take(resource: string, self: KeyValue, deadline: number): Promise<QueueAnswer> {
    const record = readRecord(self)!;
    const keyRange = this.#keys.rangeOf(resource);
    return this.#leasePool.on(record, deadline, async (pair) => {
      const alone = [unchanged(self), oldestIs(keyRange, self.created), empty(markersIn(keyRange))];
      const answer = await this.#client.txn(
        {
          compare: record.mode === "exclusive" ? alone : [absent(self.key)],
          success: record.mode === "exclusive" ? holding(self, record, pair) : [],
          failure: [get(self.key), ...this.#queueReader.look(keyRange, record, self.created)],
        },
        { deadline, repeatable: true },
      );
      if (answer.succeeded) {
        if (record.mode === "shared") return { kind: "gone", why: "unknown" };
        return holdsAfter(answer, self, { ...record, claimed: true }, pair);
      }
      const [own] = found(answer, 0);
      if (own === undefined) return { kind: "gone", why: "unknown" };
      const snapshot = await this.#queueReader.snapshot(keyRange, answer, 1, deadline);
      return this.decide(resource, own, snapshot, deadline);
    });
  }

  /** The claim was sent before, and its key was found: it holds, or it keeps its place. */
  async takeAgain(resource: string, own: KeyValue, deadline: number): Promise<QueueAnswer> {
    const record = readRecord(own)!;
    const over = overAnswer(record);
    if (over !== null) return over;
    if (record.claimed) return { kind: "holds", self: own, record, marker: null };
    return this.take(resource, own, deadline);
  }

  /**
   * A claim did not enter the queue, because its tombstone (answer 0) or its key (answer 1) exists.
   */
  async enteredBefore(
    resource: string,
    answer: RawTxn,
    lease: string,
    deadline: number,
  ): Promise<QueueAnswer> {
    const [own] = found(answer, 1);
    if (found(answer, 0).length > 0 || own === undefined) return { kind: "gone", why: "unknown" };
    const again = await this.takeAgain(resource, own, deadline);
    if (again.kind !== "waits") return again;
    // The repeated claim counts as a heartbeat, so its place is kept alive.
    return { ...again, self: await this.#waiterKeys.moveTo(lease, again.self, deadline) };
  }

  /** The answer for a claim whose queue was just read. */
  async decide(
    resource: string,
    self: KeyValue,
    snapshot: QueueSnapshot,
    deadline: number,
  ): Promise<QueueAnswer> {
    const { queue, complete, nearest, behind } = snapshot;
    const record = readRecord(self)!;
    const over = overAnswer(record);
    if (over !== null) return over;
    const member = queue.find(self.key);
    if (record.claimed || member?.holds) return this.markAsHolder(self, deadline);
    const { holders } = queue;
    const lastBefore = queue.lastBefore(self);
    const waits = { kind: "waits", self, holders, lastBefore } as const;
    if (member !== undefined) {
      return { ...waits, position: queue.waiters.indexOf(member), before: queue.before(self) };
    }
    const ahead = nearest.filter(({ created }) => created < self.created);
    if (!complete && ahead.length > 0) {
      const position = behind === null ? null : behind - holders.length;
      const many = record.mode === "exclusive" ? 1 : (record.limit ?? 1);
      return { ...waits, position, before: ahead.slice(0, many) };
    }
    const whole = await this.#queueReader.queue(resource, deadline);
    return { ...waits, position: null, before: whole.before(self) };
  }

  /** Marks a waiter as a holder in its key, which makes it a holder for good. */
  async markAsHolder(self: KeyValue, deadline: number): Promise<QueueAnswer> {
    let current = self;
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const record = readRecord(current)!;
      const over = overAnswer(record);
      if (over !== null) return over;
      if (record.claimed) return { kind: "holds", self: current, record, marker: null };
      const answer = await this.#leasePool.on(record, deadline, async (pair) => {
        const txn = await this.#client.txn(
          {
            compare: [unchanged(current)],
            success: holding(current, record, pair),
            failure: [get(current.key)],
          },
          { deadline, repeatable: true },
        );
        return txn.succeeded
          ? holdsAfter(txn, current, { ...record, claimed: true }, pair)
          : (found(txn, 0)[0] ?? null);
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
}

function holding({ key }: KeyValue, record: KeyRecord, pair: LeasePair): Op[] {
  return puts(key, writeRecord({ ...record, claimed: true }), pair);
}
