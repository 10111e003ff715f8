import type { Claim } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { created, del, type KeyValue, put, unchanged } from "../client/requests.js";
import { markerOf } from "./keys.js";
import type { Queue } from "./queue.js";

/** Keeps the keys of waiters alive, and deletes them. Both are safe to repeat. */
export class WaiterKeys {
  readonly #client: EtcdClient;

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  /**
   * Moves a waiter's key to the lease that is kept alive, if it is on another one, which will end.
   * If the key has changed, the next heartbeat sees that.
   */
  async moveTo(lease: string, self: KeyValue, deadline: number): Promise<KeyValue> {
    if (self.lease === lease) return self;
    const txn = {
      compare: [unchanged(self)],
      success: [put(self.key, null, lease)],
      failure: [],
    };
    const answer = await this.#client.txn(txn, { deadline, repeatable: true });
    return answer.succeeded ? { ...self, modified: answer.header.revision ?? "0", lease } : self;
  }

  /** Deletes the key and the marker of a waiter or a grant that nobody wants. */
  async remove(self: Pick<KeyValue, "key" | "created">, deadline: number): Promise<void> {
    const txn = {
      compare: [created(self.key, self.created)],
      success: [del(self.key), del(markerOf(self.key))],
      failure: [],
    };
    await this.#client.txn(txn, { deadline, repeatable: true });
  }

  /** Refuses a claim that entered a queue of another limit, and deletes its key. */
  async refuseOtherLimit(
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
}
