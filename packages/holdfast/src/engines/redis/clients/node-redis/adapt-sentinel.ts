import { notOpen } from "../../protocol/failure.js";
import { textIn } from "../../protocol/shape.js";
import type { RedisConnection } from "../connection.js";
import { scanNodes } from "../scan.js";
import { lazyDuplicate } from "./lazy-duplicate.js";
import type { CommandSender, NodeRedisSentinelClient } from "./node-redis-client.js";
import { openSubscription } from "./open-subscription.js";
import { COMMAND_OPTIONS, runScriptThenWait, scanner, scriptCommand } from "./run-script.js";
import { SentinelReconnect } from "./sentinel-reconnect.js";

/** The primary that Sentinels name. */
export function adaptSentinel(client: NodeRedisSentinelClient): RedisConnection {
  const quick = client.withCommandOptions(COMMAND_OPTIONS);
  const reconnecting = new SentinelReconnect(() => client);
  const primary: CommandSender = {
    sendCommand: (args) => {
      if (!client.isOpen) return Promise.reject(notOpen("createSentinel"));
      const wait = reconnecting.wait();
      if (wait === null) return quick.sendCommand(false, args);
      return wait.then(() => quick.sendCommand(false, args));
    },
  };
  // The client sends a command again when it has lost the connection to the primary, and emits this
  // event when it opens a new one.
  let [changes, waitChanges] = [0, 0];
  const changed = () => void changes++;
  client.on("topology-change", changed);
  const waitClient = lazyDuplicate(client, (copy) =>
    copy.on("topology-change", () => void waitChanges++),
  );
  const waitReconnecting = new SentinelReconnect(() => waitClient.connected());
  return {
    connectionId: (_, waits) => (waits ? waitChanges : changes),
    runScript: (script, keys, args) => primary.sendCommand(scriptCommand(script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) => {
      const copy = await waitClient.open();
      await waitReconnecting.wait();
      return copy.use((lent) =>
        runScriptThenWait(
          { sendCommand: (command) => lent.sendCommand(false, command, COMMAND_OPTIONS) },
          scriptCommand(script, keys, args),
          wait,
        ),
      );
    },
    scan: (cursor, glob, max) => scanNodes([scanner(primary)], cursor, glob, max),
    info: async (section) => [textIn(await primary.sendCommand(["INFO", section]))],
    subscribe: (channels, onMessage, onError) =>
      openSubscription(client.duplicate(), channels, onMessage, onError),
    close: () => {
      client.off("topology-change", changed);
      waitClient.close();
    },
  };
}
