import type { NodeListener } from "../connection.js";
import { CONNECTION_OPTIONS } from "./connection-options.js";
import type { IoRedisClient } from "./ioredis-client.js";

/** Listens to one node on a connection of its own, and subscribes again when it reconnects. */
export function listenToNode(
  node: IoRedisClient,
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
): NodeListener {
  const heard = new Map<string, "shard" | "everywhere">();
  const subscriber = node.duplicate({
    ...CONNECTION_OPTIONS,
    autoResubscribe: false,
    retryStrategy: pause,
  });
  const subscribe = async (channel: string, kind: "shard" | "everywhere") => {
    heard.set(channel, kind);
    await (kind === "shard" ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel));
  };
  subscriber.on("error", onError);
  subscriber.on("message", onMessage);
  subscriber.on("smessage", onMessage);
  subscriber.on("connect", () => subscriber.stream?.unref());
  subscriber.on("ready", () => {
    for (const [channel, kind] of heard) subscribe(channel, kind).catch(onError);
  });
  return { subscribe, close: () => subscriber.disconnect() };
}

function pause(tries: number): number {
  return Math.min(50 * 2 ** tries, 2_000);
}
