import { tagOf } from "../../protocol/slots.js";
import type { IoRedisClient, IoRedisClusterClient } from "./ioredis-client.js";

/** The address of the primary that serves a slot. */
export async function primaryOf(cluster: IoRedisClusterClient, slot: number): Promise<string> {
  const known = () => cluster.slots[slot]?.[0];
  let cause: unknown;
  // Any command makes the client learn who serves the slots. This one changes nothing, and it may
  // fail because the user has no right to the key.
  if (known() === undefined) {
    await cluster.call("EXISTS", tagOf(slot)).catch((error: unknown) => {
      cause = error;
    });
  }
  const address = known();
  if (address === undefined) throw new Error("CLUSTERDOWN nobody serves this slot", { cause });
  return address;
}

/**
 * Counts the lost connections to each node. After each loss ioredis sends unanswered commands
 * again.
 */
export function countLosses(cluster: IoRedisClusterClient) {
  const losses = new Map<string, number>();
  const of = (address: string) => losses.get(address) ?? 0;
  function onLoss(this: IoRedisClient): void {
    losses.set(addressOf(this), of(addressOf(this)) + 1);
  }
  const add = (node: IoRedisClient) => void node.on("close", onLoss);
  for (const node of cluster.nodes("all")) add(node);
  cluster.on("+node", add);
  const end = () => {
    cluster.off("+node", add);
    for (const node of cluster.nodes("all")) node.off("close", onLoss);
  };
  return { of, end };
}

export function nodeAt(cluster: IoRedisClusterClient, address: string): IoRedisClient {
  const node = cluster.nodes("master").find((one) => addressOf(one) === address);
  if (node === undefined) throw new Error("CLUSTERDOWN the primary of this slot is gone");
  return node;
}

function addressOf({ options }: IoRedisClient): string {
  return `${options.host}:${options.port}`;
}
