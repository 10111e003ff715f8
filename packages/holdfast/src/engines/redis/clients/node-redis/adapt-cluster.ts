import { notOpen } from "../../protocol/failure.js";
import { textIn } from "../../protocol/shape.js";
import { slotOf } from "../../protocol/slots.js";
import { StalledCalls } from "../../sending/stalled-calls.js";
import type { RedisConnection } from "../connection.js";
import { scanNodes } from "../scan.js";
import { end, lazyDuplicate } from "./lazy-duplicate.js";
import type { NodeRedisClusterClient } from "./node-redis-client.js";
import { COMMAND_OPTIONS, runScriptThenWait, scanner, scriptCommand } from "./run-script.js";

export function adaptCluster(client: NodeRedisClusterClient): RedisConnection {
  const quick = client.withCommandOptions(COMMAND_OPTIONS);
  const waitClient = lazyDuplicate(client);
  const stalledCalls = new StalledCalls((key) => rediscover(client, key));
  const stalledWaits = new StalledCalls((key) => {
    const copy = waitClient.connected();
    if (copy !== null) rediscover(copy, key);
  });
  const primaries = () =>
    Promise.all(
      client.masters.map(async (node) =>
        (await client.nodeClient(node)).withCommandOptions(COMMAND_OPTIONS),
      ),
    );
  return {
    runScript: (script, keys, args) =>
      client.isOpen
        ? stalledCalls.watch(
            keys[0]!,
            quick.sendCommand(keys[0], false, scriptCommand(script, keys, args)),
          )
        : Promise.reject(notOpen("createCluster")),
    runScriptAndWait: async (script, keys, args, wait) => {
      const cluster = await waitClient.open();
      const key = keys[0]!;
      const serving = cluster.slots[slotOf(key)];
      if (serving === undefined) throw new Error("CLUSTERDCOMMAND_OPTIONS nobody serves this slot");
      const node = await cluster.nodeClient(serving.master);
      try {
        const asked = runScriptThenWait(
          node.withCommandOptions(COMMAND_OPTIONS),
          scriptCommand(script, keys, args),
          wait,
        );
        return await stalledWaits.watch(key, asked, wait.timeoutMs);
      } catch (error) {
        // Any command to the Cluster makes the client learn who serves the slot. This one changes
        // nothing.
        const moved = /^(MOVED|ASK) /.test((error as Error).message);
        if (moved)
          await cluster
            .withCommandOptions(COMMAND_OPTIONS)
            .sendCommand(key, false, ["EXISTS", key]);
        throw error;
      }
    },
    scan: async (cursor, glob, max) =>
      scanNodes((await primaries()).map(scanner), cursor, glob, max),
    info: async (section) =>
      Promise.all(
        (await primaries()).map(async (node) => textIn(await node.sendCommand(["INFO", section]))),
      ),
    shards: {
      primaryOf: (slot) => {
        const address = client.slots[slot]?.master.address;
        if (address === undefined)
          throw new Error("CLUSTERDCOMMAND_OPTIONS nobody serves this slot");
        return address;
      },
      listen: (address, onMessage, onError) => {
        const node = client.masters.find((one) => one.address === address);
        const opening = (async () => {
          if (node === undefined)
            throw new Error("CLUSTERDCOMMAND_OPTIONS the primary of this slot is gone");
          const copy = (await client.nodeClient(node)).duplicate();
          copy.on("error", onError);
          await copy.connect();
          copy.unref();
          return copy;
        })();
        opening.catch(() => {});
        // Always the same function, because node-redis does not add a listener twice.
        const listen = (message: string, channel: string) => onMessage(channel, message);
        return {
          subscribe: async (channel, kind) => {
            const copy = await opening;
            await (kind === "shard"
              ? copy.sSubscribe(channel, listen)
              : copy.subscribe(channel, listen));
          },
          close: () => void opening.then(end, () => {}),
        };
      },
    },
    subscribe: () => {
      throw new Error("a Cluster is listened to by its shards");
    },
    close: () => {
      for (const stalled of [stalledCalls, stalledWaits]) stalled.close();
      waitClient.close();
    },
  };
}

/**
 * Asks the other primary that answers first who serves the slots. By itself node-redis may ask a
 * primary that hangs, and it would wait for ever, as it has no deadline for this question.
 */
function rediscover(client: NodeRedisClusterClient, key: string): void {
  const late = client.slots[slotOf(key)]?.master.address;
  const others = client.masters.filter(({ address }) => address !== late);
  const answering = others.map(async (other) => {
    const node = await client.nodeClient(other);
    await node.sendCommand(["PING"]);
    return node;
  });
  Promise.any(answering)
    .then((node) => client._slots?.rediscover?.(node))
    // No primary answers. The calls themselves fail and report that.
    .catch(() => {});
}
