import { randomBytes } from "node:crypto";
import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { RedisConnection, Subscription } from "../clients/connection.js";
import { clientError } from "../protocol/client-error.js";
import { slotOf, tagOf } from "../protocol/slots.js";
import { ShardListeners } from "./shard-listeners.js";

const LISTEN_AGAIN_MS = 5_000;
const LISTEN_TIMEOUT_MS = 3_000;

/**
 * Messages that the server sends without a request: pushed grants and changes. Without them
 * everything still works, by heartbeats. So a failure here becomes an event, not an error, and is
 * retried after a pause.
 */
export class Notifications {
  /** The channel on which everybody hears of changes. */
  readonly changesChannel: string;
  readonly #connection: RedisConnection;
  readonly #channel: string;
  readonly #onMessage: (channel: string, message: string) => void;
  readonly #shards: ShardListeners | null;
  #subscription: Subscription | null = null;
  #listening: Promise<void> | null = null;
  #listenAgainAt = -Infinity;
  #subscribed = false;
  #closed = false;

  constructor(
    connection: RedisConnection,
    prefix: string,
    onMessage: (channel: string, message: string) => void,
  ) {
    this.#connection = connection;
    this.#onMessage = onMessage;
    // Colons separate the fields of a waiter's record, so the channel in it must not have any.
    const names = prefix.replaceAll(":", ".");
    this.changesChannel = `${names}changes`;
    this.#channel = `${names}push.${randomBytes(8).toString("hex")}`;
    this.#shards =
      connection.shards === undefined
        ? null
        : new ShardListeners(connection.shards, onMessage, reportPushFailure);
  }

  /** The channel for grants of this key. On a Cluster each slot has its own, in the key's shard. */
  channelOf(key: string): string {
    return this.#shards === null ? this.#channel : `${this.#channel}.{${tagOf(slotOf(key))}}`;
  }

  /** Subscribes to changes; on a single server also to all our grants. */
  async listen(): Promise<void> {
    if (this.#closed) return;
    if (this.#shards !== null) {
      return this.#attempt(this.#shards.subscribe(this.changesChannel, "everywhere"));
    }
    if (this.#subscription?.isOver()) this.#listening = null;
    if (this.#listening !== null) return this.#listening;
    if (systemClock.now() < this.#listenAgainAt) return;
    const channels = [this.#channel, this.changesChannel];
    this.#listenAgainAt = systemClock.now() + LISTEN_AGAIN_MS;
    const subscription = this.#connection.subscribe(channels, this.#onMessage, reportPushFailure);
    this.#subscription = subscription;
    this.#subscribed = false;
    this.#listening = withinTimeout(subscription.ready).then(
      () => {
        this.#subscribed = true;
      },
      (error: unknown) => {
        subscription.close();
        this.#listening = null;
        reportPushFailure(error);
      },
    );
    return this.#listening;
  }

  /**
   * Whether pushes of all our grants arrive. Never true on a Cluster, where listenFor asks for each
   * key.
   */
  get isSubscribed(): boolean {
    return this.#subscribed && this.#subscription?.isOver() === false;
  }

  /** Subscribes to grants of this key. Must resolve before a waiter joins the key's queue. */
  async listenFor(key: string): Promise<void> {
    if (this.#shards === null || this.#closed) return this.listen();
    void this.listen();
    await this.#attempt(this.#shards.subscribe(this.channelOf(key), "shard"));
  }

  close(): void {
    this.#closed = true;
    this.#subscription?.close();
    this.#shards?.close();
  }

  async #attempt(listening: Promise<void>): Promise<void> {
    await withinTimeout(listening).catch((error: unknown) => {
      if (!this.#closed) reportPushFailure(error);
    });
  }
}

/** No caller waits for this, so the error becomes an event. */
export function reportPushFailure(error: unknown): void {
  emit("failed", () => ({ during: "push", error: clientError(error) }));
}

/**
 * Rejects after LISTEN_TIMEOUT_MS. The timer keeps the process alive, which the subscription's
 * sockets do not.
 */
async function withinTimeout(listening: Promise<void>): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const fail = () => reject(new Error(`no subscription within ${LISTEN_TIMEOUT_MS} ms`));
    timer = systemClock.timer(LISTEN_TIMEOUT_MS, fail, true);
  });
  try {
    await Promise.race([listening, late]);
  } finally {
    timer?.cancel();
  }
}
