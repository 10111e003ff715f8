import type { Claim } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { absent, empty, found, get, nested, put, type RawTxn } from "../client/requests.js";
import { type LeasePair, type LeasePool, puts } from "../leases/lease-pool.js";
import { newRecord, writeRecord } from "./key-record.js";
import type { Keys } from "./keys.js";
import type { LongQueues } from "./long-queues.js";
import { type Holds, holdsAfter, type QueueAnswer } from "./queue-answer.js";
import type { QueueReader } from "./queue-reader.js";
import type { QueueTurns } from "./queue-turns.js";
import type { WaiterKeys } from "./waiter-keys.js";

interface Tools {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly leasePool: LeasePool;
  readonly queueReader: QueueReader;
  readonly turns: QueueTurns;
  readonly waiterKeys: WaiterKeys;
  readonly longQueues: LongQueues;
  readonly engineId: string;
}

/**
 * Sends the claims of one engine. A transaction decides each of them, and is safe to repeat: its
 * second copy finds the work of the first.
 */
export class Claims {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  tryAcquire(claim: Claim, deadline: number, isOver: () => boolean): Promise<QueueAnswer> {
    const { client, leasePool, queueReader, turns } = this.#tools;
    return leasePool.on(claim, deadline, async (pair): Promise<QueueAnswer> => {
      if (isOver()) return { kind: "gone", why: "unknown" };
      const { keyRange, key, take, tombstone } = this.#operationsFor(claim, pair);
      const first = await client.txn(
        {
          compare: [absent(tombstone), empty(keyRange)],
          success: take,
          failure: [get(tombstone), get(key), ...queueReader.look(keyRange, claim)],
        },
        { deadline, repeatable: true },
      );
      if (first.succeeded) return this.#holds(first, claim, key, pair);
      if (found(first, 0).length > 0) return { kind: "gone", why: "unknown" };
      const [own] = found(first, 1);
      if (own !== undefined) {
        return unlessWaiting(await turns.takeAgain(claim.resource, own, deadline));
      }
      const { queue } = await queueReader.snapshot(keyRange, first, 2, deadline);
      queue.refuseOtherLimit(claim, key);
      if (!queue.admits(claim)) return { kind: "busy", holders: queue.holders };
      return this.#join(claim, deadline);
    });
  }

  enqueue(claim: Claim, deadline: number, isOver: () => boolean): Promise<QueueAnswer> {
    const { client, leasePool, queueReader, turns, waiterKeys, longQueues, engineId } = this.#tools;
    const { resource, ttlMs } = claim;
    return leasePool.on(claim, deadline, async (pair): Promise<QueueAnswer> => {
      const { keyRange, key, take, tombstone } = this.#operationsFor(claim, pair);
      const { id: lease } = await leasePool.freshOfWaiter(ttlMs, deadline);
      if (isOver()) return { kind: "gone", why: "unknown" };
      const ahead = longQueues.lastWaiter(claim);
      if (ahead !== null) return longQueues.enterBehind(claim, ahead, lease, deadline);
      const value = writeRecord(newRecord(claim, engineId, false));
      const enterQueue = nested({
        compare: [absent(tombstone), absent(key)],
        success: [put(key, value, lease), ...queueReader.look(keyRange, claim)],
        failure: [get(tombstone), get(key)],
      });
      const answer = await client.txn(
        { compare: [absent(tombstone), empty(keyRange)], success: take, failure: [enterQueue] },
        { deadline, repeatable: true },
      );
      if (answer.succeeded) return this.#holds(answer, claim, key, pair);
      const inner: RawTxn = answer.responses?.[0]?.response_txn ?? { header: {} };
      if (!inner.succeeded) return turns.enteredBefore(resource, inner, lease, deadline);
      const revision = BigInt(answer.header.revision ?? 0);
      const self = { key, value, created: revision, modified: String(revision), lease };
      const snapshot = await queueReader.snapshot(keyRange, inner, 1, deadline, true);
      await waiterKeys.refuseOtherLimit(snapshot.queue, claim, self, deadline);
      return turns.decide(resource, self, snapshot, deadline);
    });
  }

  /** The queue admits this claim. Whether it still does is known once the key exists. */
  async #join(claim: Claim, deadline: number): Promise<QueueAnswer> {
    const { client, keys, leasePool, turns, waiterKeys, engineId } = this.#tools;
    const { resource, grantId } = claim;
    const key = keys.claimKey(resource, grantId);
    const tombstone = keys.tombstone(grantId);
    const { id: lease } = await leasePool.freshOfWaiter(claim.ttlMs, deadline);
    const value = writeRecord(newRecord(claim, engineId, false));
    // If a copy of the same claim arrived first, its key is found when the turn is taken.
    const { header } = await client.txn(
      { compare: [absent(tombstone), absent(key)], success: [put(key, value, lease)], failure: [] },
      { deadline, repeatable: true },
    );
    const at = { created: BigInt(header.revision ?? 0), modified: header.revision ?? "0" };
    const answer = await turns.take(resource, { key, value, lease, ...at }, deadline);
    if (answer.kind === "waits") await waiterKeys.remove(answer.self, deadline);
    return unlessWaiting(answer);
  }

  #holds(answer: RawTxn, claim: Claim, key: string, pair: LeasePair): Holds {
    const created = BigInt(answer.header.revision ?? "0");
    return holdsAfter(answer, { key, created }, newRecord(claim, this.#tools.engineId, true), pair);
  }

  #operationsFor(claim: Claim, pair: LeasePair) {
    const { keys, engineId } = this.#tools;
    const { resource, grantId } = claim;
    const key = keys.claimKey(resource, grantId);
    const value = writeRecord(newRecord(claim, engineId, true));
    return {
      keyRange: keys.rangeOf(resource),
      key,
      tombstone: keys.tombstone(grantId),
      take: puts(key, value, pair),
    };
  }
}

/** The answer for a claim that does not wait. */
function unlessWaiting(answer: QueueAnswer): QueueAnswer {
  return answer.kind === "waits" ? { kind: "busy", holders: answer.holders } : answer;
}
