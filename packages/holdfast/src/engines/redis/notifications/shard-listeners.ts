import { systemClock } from "../../../core/runtime/clock.js";
import type { NodeListener, Shards } from "../clients/connection.js";
import { slotOf } from "../protocol/slots.js";

// A node drops the subscriptions of a slot that leaves it, and the slot may be back before we
// notice. So we subscribe again after this long, even if the address is the same.
const ASK_AGAIN_MS = 900;

interface ShardSubscription {
  readonly address: string;
  readonly askedAt: number;
  readonly done: Promise<void>;
}

/**
 * Receives messages from the primaries of a Cluster, by one connection to each that is needed. A
 * slot may move, or a replica become primary, at any time. Every heartbeat subscribes again, and so
 * follows the slot.
 */
export class ShardListeners {
  readonly #shards: Shards;
  readonly #onMessage: (channel: string, message: string) => void;
  readonly #onError: (error: Error) => void;
  readonly #listeners = new Map<string, NodeListener>();
  readonly #subscriptions = new Map<string, ShardSubscription>();

  constructor(
    shards: Shards,
    onMessage: (channel: string, message: string) => void,
    onError: (error: Error) => void,
  ) {
    this.#shards = shards;
    this.#onMessage = onMessage;
    this.#onError = onError;
  }

  /** Resolves when we are subscribed at the primary of the channel's slot. */
  async subscribe(channel: string, kind: "shard" | "everywhere"): Promise<void> {
    const address = await this.#shards.primaryOf(slotOf(channel));
    const known = this.#subscriptions.get(channel);
    const askedAt = systemClock.now();
    const isFresh = known?.address === address && askedAt - known.askedAt < ASK_AGAIN_MS;
    if (isFresh) return known.done;
    const subscription = {
      address,
      askedAt,
      done: this.#listener(address).subscribe(channel, kind),
    };
    this.#subscriptions.set(channel, subscription);
    this.#closeIdle();
    try {
      await subscription.done;
    } catch (error) {
      // The next call subscribes again, at the primary that serves the slot by then.
      if (this.#subscriptions.get(channel) === subscription) this.#subscriptions.delete(channel);
      this.#closeIdle();
      throw error;
    }
  }

  close(): void {
    this.#subscriptions.clear();
    this.#closeIdle();
  }

  #listener(address: string): NodeListener {
    const known = this.#listeners.get(address);
    if (known !== undefined) return known;
    const listener = this.#shards.listen(address, this.#onMessage, this.#onError);
    this.#listeners.set(address, listener);
    return listener;
  }

  #closeIdle(): void {
    const needed = new Set([...this.#subscriptions.values()].map(({ address }) => address));
    for (const [address, listener] of this.#listeners) {
      if (needed.has(address)) continue;
      this.#listeners.delete(address);
      listener.close();
    }
  }
}
