import type { EtcdClient } from "../client/client.js";
import { countOf, found, type Op, type RawTxn, range } from "../client/requests.js";
import { type KeyRange, type Keys, markersIn } from "./keys.js";
import { type Entry, type Member, Queue } from "./queue.js";

/** A waiter need not see the whole queue: who holds, and who is next before it. */
export const FIRST = 64;
const NEAREST = 8;
/** What was read of a long queue is good for so long to stand in it without another look. */
export const READ_WITHIN_MS = 10_000;

/** As much of a queue as was asked for. */
export interface QueueSnapshot {
  readonly queue: Queue;
  readonly complete: boolean;
  readonly nearest: readonly Member[];
  /** How many the newest in the key range stands behind; null where somebody else asks. */
  readonly behind: number | null;
}

/** What is asked about the queue of a resource, and what the answers say. */
export class QueueReader {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  /** The queue of a resource, all of it. */
  queue(resource: string, deadline: number): Promise<Queue> {
    return this.#whole(this.#keys.rangeOf(resource), deadline);
  }

  /** Operations of a transaction that `snapshot` can read. */
  look(
    keyRange: KeyRange,
    { mode, limit }: Pick<Entry, "mode" | "limit">,
    createdBefore?: bigint,
  ): Op[] {
    // Of readers nobody knows how far before them the nearest writer is.
    const isOpen = mode === "shared" && (limit === null || limit > FIRST);
    if (isOpen) return [range(keyRange, { order: "ASCEND" })];
    // Without createdBefore, the last of all has just come, and finds itself too.
    return [
      range(keyRange, { order: "ASCEND", limit: FIRST }),
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
    const marks = found(txn, at + 1);
    const behind = isNewest ? countOf(txn, at) - marks.length - 1 : null;
    const complete = first.length === countOf(txn, at);
    const queue = new Queue([...first, ...marks]);
    // A mark whose grant is not among the first need not be an orphan.
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
