import { emit } from "../../../../events.js";
import { clientError } from "../../protocol/client-error.js";
import type { IoRedisSubscriber } from "./ioredis-client.js";

export type IoRedisConstructor<C> = new (options: object) => C;

/**
 * Hears from the Sentinels when another server becomes primary. An old primary that hangs or is cut
 * off keeps its connections, so nothing else tells. ioredis can listen to Sentinels itself, but
 * then it keeps the process alive.
 */
export function watchSentinels(
  Redis: IoRedisConstructor<IoRedisSubscriber>,
  sentinels: readonly object[],
  name: string,
  onSwitch: () => void,
): () => void {
  const watches = sentinels.map((sentinel) => {
    const watch = new Redis({ ...sentinel, autoResubscribe: false, maxRetriesPerRequest: null });
    watch.on("connect", () => watch.stream?.unref());
    watch.on("message", (_, message) => {
      if (message.split(" ")[0] === name) onSwitch();
    });
    watch.on("error", (error) => failed(error));
    watch.on("ready", () => void watch.subscribe("+switch-master").catch(failed));
    return watch;
  });
  return () => {
    for (const watch of watches) watch.disconnect();
  };
}

function failed(error: unknown): void {
  emit("failed", () => ({ during: "sentinel", error: clientError(error) }));
}
