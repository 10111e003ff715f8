import type { EtcdClient } from "../client/client.js";
import { countOf, found, type Op, type RawTxn, range } from "../client/requests.js";
import type { KeyRecord } from "./key-record.js";
import { type KeyRange, type Keys, markersIn } from "./keys.js";
import { Queue, type QueueMember } from "./queue.js";

/**
 * A waiter does not need the whole queue: only its head, with the holders, and its nearest
 * predecessors.
 */
export const HEAD_SIZE = 64;
const NEAREST = 8;

/** The part of a queue that was read. */
export interface QueueSnapshot {
  readonly queue: Queue;
  readonly complete: boolean;
  readonly nearest: readonly QueueMember[];
  /** How many members are before the newest one; null where another member asks. */
  readonly behind: number | null;
}

/** Reads the queue of a resource, whole or in part. */
export class QueueReader {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  /** The whole queue of a resource. */
  queue(resource: string, deadline: number): Promise<Queue> {
    return this.#whole(this.#keys.rangeOf(resource), deadline);
  }

  /** Operations of a transaction whose answers `snapshot` reads. */
  look(
    keyRange: KeyRange,
    { mode, limit }: Pick<KeyRecord, "mode" | "limit">,
    createdBefore?: bigint,
  ): Op[] {
    // The nearest exclusive member before a shared one may be anywhere, so the whole queue is read.
    const isOpen = mode === "shared" && (limit === null || limit > HEAD_SIZE);
    if (isOpen) return [range(keyRange, { order: "ASCEND" })];
    // Without createdBefore, the member has just been created, and finds itself as the last one.
    return [
      range(keyRange, { order: "ASCEND", limit: HEAD_SIZE }),
      range(markersIn(keyRange)),
      range(keyRange, {
        order: "DESCEND",
        limit: Math.max(NEAREST, (limit ?? 0) + 1),
        ...(createdBefore === undefined ? {} : { createdBefore }),
      }),
    ];
  }

  async snapshot(
    keyRange: KeyRange,
    txn: RawTxn,
    at: number,
    deadline: number,
    isNewest = false,
  ): Promise<QueueSnapshot> {
    const first = found(txn, at);
    const markers = found(txn, at + 1);
    const behind = isNewest ? countOf(txn, at) - markers.length - 1 : null;
    const complete = first.length === countOf(txn, at);
    const queue = new Queue([...first, ...markers]);
    // A marker is not an orphan if its grant is merely outside the part that was read.
    if (!complete && queue.orphans.length > 0) {
      return { queue: await this.#whole(keyRange, deadline), complete: true, nearest: [], behind };
    }
    const nearest = new Queue(found(txn, at + 2)).members.toReversed();
    return { queue, complete, nearest, behind };
  }

  async #whole(keyRange: KeyRange, deadline: number): Promise<Queue> {
    const txn = { compare: [], success: [range(keyRange, { order: "ASCEND" })], failure: [] };
    const options = { deadline, repeatable: true };
    return new Queue(found(await this.#client.txn(txn, options), 0));
  }
}
