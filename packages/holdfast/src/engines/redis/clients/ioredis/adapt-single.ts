import { textIn } from "../../protocol/shape.js";
import type { RedisConnection, Subscription } from "../connection.js";
import { scanNodes } from "../scan.js";
import { CONNECTION_OPTIONS } from "./connection-options.js";
import type { IoRedisClient, IoRedisSubscriber } from "./ioredis-client.js";
import { followers } from "./reconnect.js";
import { runScript, runScriptThenWait, scanner } from "./run-script.js";

/** One server, or one that Sentinels name. */
export function adaptSingle(client: IoRedisClient): RedisConnection {
  let waitClient: (IoRedisClient & IoRedisSubscriber) | null = null;
  const follow = followers(client);
  // Whenever a connection is lost, ioredis sends unanswered commands again.
  let [losses, waitLosses] = [0, 0];
  const onLoss = () => void losses++;
  client.on("close", onLoss);
  return {
    connectionId: (_, waits) => (waits ? waitLosses : losses),
    runScript: (script, keys, args) => runScript(client, script, keys, args),
    runScriptAndWait: (script, keys, args, wait) => {
      if (waitClient === null || waitClient.status === "end") {
        // WAIT blocks its connection, so it gets one of its own.
        const own = client.duplicate(CONNECTION_OPTIONS);
        own.on("error", () => {});
        own.on("close", () => void waitLosses++);
        own.on("connect", () => own.stream?.unref());
        own.on("end", () => follow.delete(own));
        follow.add(own);
        waitClient = own;
      }
      return runScriptThenWait(waitClient, script, keys, args, wait);
    },
    scan: (cursor, glob, max) => scanNodes([scanner(client)], cursor, glob, max),
    info: async (section) => [textIn(await client.call("INFO", section))],
    subscribe: (channels, onMessage, onError) => {
      // When ioredis resubscribes while the connection is being ended, it leaves an unhandled
      // rejection, which ends the process. So we resubscribe ourselves, whenever the connection is
      // ready.
      const subscriber = client.duplicate({ ...CONNECTION_OPTIONS, autoResubscribe: false });
      follow.add(subscriber);
      return openSubscription(subscriber, channels, onMessage, onError, () =>
        follow.delete(subscriber),
      );
    },
    close: () => {
      client.off("close", onLoss);
      follow.end();
      waitClient?.disconnect();
    },
  };
}

function openSubscription(
  subscriber: IoRedisSubscriber,
  channels: readonly string[],
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
  closed: () => void = () => {},
): Subscription {
  subscriber.on("error", onError);
  subscriber.on("message", onMessage);
  const ready = new Promise<void>((resolve, reject) => {
    subscriber.on("ready", () => {
      const heard = subscriber.subscribe(...channels).then(() => {
        // A subscription must not keep the process alive. A waiter does that with its own timers.
        subscriber.stream?.unref();
        resolve();
      });
      heard.catch((error: Error) => {
        onError(error);
        reject(error);
      });
    });
    subscriber.on("end", () => reject(new Error("the connection was ended")));
  });
  const close = () => {
    closed();
    subscriber.disconnect();
  };
  return { ready, isOver: () => subscriber.status === "end", close };
}
