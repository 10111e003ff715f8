import type { Subscription } from "../connection.js";
import { end } from "./lazy-duplicate.js";
import type { OwnClient } from "./node-redis-client.js";

/** Subscribes on a client that is opened for that alone. */
export function openSubscription(
  subscriber: OwnClient,
  channels: readonly string[],
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
  connected: () => void = () => {},
): Subscription {
  subscriber.on("error", onError);
  let isReady = false;
  const listen = async () => {
    await subscriber.connect();
    for (const channel of channels) {
      await subscriber.subscribe(channel, (message) => onMessage(channel, message));
    }
    isReady = true;
    connected();
  };
  const ready = listen();
  return {
    ready,
    isOver: () => isReady && !subscriber.isOpen,
    close: () => end(subscriber),
  };
}
