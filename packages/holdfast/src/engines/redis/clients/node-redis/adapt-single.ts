import { notOpen } from "../../protocol/failure.js";
import { textIn } from "../../protocol/shape.js";
import type { RedisConnection } from "../connection.js";
import { scanNodes } from "../scan.js";
import { lazyDuplicate } from "./lazy-duplicate.js";
import type { CommandSender, NodeRedisClient } from "./node-redis-client.js";
import { openSubscription } from "./open-subscription.js";
import { COMMAND_OPTIONS, runScriptThenWait, scanner, scriptCommand } from "./run-script.js";

/** One server. */
export function adaptSingle(client: NodeRedisClient): RedisConnection {
  const bare = client.withCommandOptions(COMMAND_OPTIONS);
  const quick: CommandSender = {
    sendCommand: (args) =>
      client.isOpen ? bare.sendCommand(args) : Promise.reject(notOpen("createClient")),
  };
  const waitClient = lazyDuplicate(client, (copy) => copy.unref());
  return {
    runScript: (script, keys, args) => quick.sendCommand(scriptCommand(script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) =>
      runScriptThenWait(
        (await waitClient.open()).withCommandOptions(COMMAND_OPTIONS),
        scriptCommand(script, keys, args),
        wait,
      ),
    scan: (cursor, glob, max) => scanNodes([scanner(quick)], cursor, glob, max),
    info: async (section) => [textIn(await quick.sendCommand(["INFO", section]))],
    subscribe: (channels, onMessage, onError) => {
      const copy = client.duplicate();
      // A subscription must not keep the process alive. A waiter does that with its own timers.
      return openSubscription(copy, channels, onMessage, onError, () => copy.unref());
    },
    close: () => waitClient.close(),
  };
}
