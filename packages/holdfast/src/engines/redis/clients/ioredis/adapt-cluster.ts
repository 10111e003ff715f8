import { textIn } from "../../protocol/shape.js";
import { slotOf } from "../../protocol/slots.js";
import { StalledCalls } from "../../sending/stalled-calls.js";
import type { RedisConnection } from "../connection.js";
import { scanNodes } from "../scan.js";
import { countLosses, nodeAt, primaryOf } from "./cluster-nodes.js";
import { CONNECTION_OPTIONS } from "./connection-options.js";
import type { IoRedisClusterClient, IoRedisSubscriber } from "./ioredis-client.js";
import { listenToNode } from "./listen-to-node.js";
import { runScript, runScriptThenWait, scanner } from "./run-script.js";

export function adaptCluster(client: IoRedisClusterClient): RedisConnection {
  let waitClient: (IoRedisClusterClient & IoRedisSubscriber) | null = null;
  const losses = countLosses(client);
  const stalledCalls = new StalledCalls(() => client.refreshSlotsCache?.());
  const stalledWaits = new StalledCalls(() => waitClient?.refreshSlotsCache?.());
  return {
    connectionId: (key, waits) => {
      // The nodes of that client do not reconnect by themselves, so they never send twice.
      if (waits) return null;
      const address = client.slots[slotOf(key)]?.[0] ?? "";
      return `${address} ${losses.of(address)}`;
    },
    runScript: (script, keys, args) =>
      stalledCalls.watch(keys[0]!, runScript(client, script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) => {
      if (waitClient === null || waitClient.status === "end") {
        const more = { scaleReads: "master", clusterNodeRetryStrategy: null };
        const own = client.duplicate([], { ...CONNECTION_OPTIONS, ...more });
        own.on("error", () => {});
        unrefNodes(own);
        waitClient = own;
      }
      const own = waitClient;
      const key = keys[0]!;
      try {
        const node = nodeAt(own, await primaryOf(own, slotOf(key)));
        return await stalledWaits.watch(
          key,
          runScriptThenWait(node, script, keys, args, wait),
          wait.timeoutMs,
        );
      } catch (error) {
        // A command to a single node does not teach the client that another node serves the slot
        // now. Any command to the Cluster does, and this one changes nothing.
        own.call("EXISTS", key).catch(() => {});
        throw error;
      }
    },
    scan: (cursor, glob, max) => scanNodes(client.nodes("master").map(scanner), cursor, glob, max),
    info: (section) =>
      Promise.all(
        client.nodes("master").map(async (node) => textIn(await node.call("INFO", section))),
      ),
    shards: {
      primaryOf: (slot) => primaryOf(client, slot),
      listen: (address, onMessage, onError) =>
        listenToNode(nodeAt(client, address), onMessage, onError),
    },
    subscribe: () => {
      throw new Error("a Cluster is listened to by its shards");
    },
    close: () => {
      losses.end();
      for (const stalled of [stalledCalls, stalledWaits]) stalled.close();
      waitClient?.disconnect();
    },
  };
}

function unrefNodes(cluster: IoRedisSubscriber): void {
  cluster.on("+node", (node) => node.on("connect", () => node.stream?.unref()));
}
