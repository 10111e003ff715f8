import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers, RedisServer } from "@holdfast/servers";
import { channels } from "../../../../events.js";
import { until } from "../../../../test-support/until.fixture.js";
import { REDIS_DEFAULTS } from "../../options.js";
import { keyOf } from "../../protocol/keys.js";
import { SLOTS, slotOf } from "../../protocol/slots.js";
import type { TestCluster } from "./test-cluster.fixture.js";

const PRIMARIES = 3;

/** Names of resources that a new Cluster keeps in this shard: a third of the slots, in order. */
export function namesIn(shard: number, count: number, prefix = "r"): string[] {
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) {
    const name = `${prefix}${i}`;
    const slot = slotOf(keyFor(name));
    if (Math.floor((slot * PRIMARIES) / SLOTS) === shard) found.push(name);
  }
  return found;
}

export function keyFor(resource: string): string {
  return keyOf(REDIS_DEFAULTS.prefix, resource);
}

/** The primary of a resource and its replica, once what was done before is mended. */
export async function shardOf(
  cluster: TestCluster<ClusterServers>,
  resource: string,
): Promise<[RedisServer, RedisServer]> {
  let found: [RedisServer, RedisServer] | null = null;
  // Nodes learn of each other's fate one after the other, so the answers may differ for a while.
  const look = async () => {
    const primary = await cluster.servers.primaryOf(keyFor(resource));
    const replica = await cluster.servers.replicaOf(primary);
    const role = String(await cluster.node(replica).call("ROLE"));
    found = /^slave.*,connected,/.test(role) ? [primary, replica] : null;
  };
  await until(
    "a whole shard",
    () =>
      look().then(
        () => found,
        () => null,
      ),
    40_000,
  );
  return found!;
}

/** The replica takes over, and nobody has failed. */
export async function handOver(
  cluster: TestCluster<ClusterServers>,
  resource: string,
): Promise<void> {
  const [primary, replica] = await shardOf(cluster, resource);
  const node = cluster.node(replica);
  const succeeded = async () => {
    if (/^master/.test(String(await node.call("ROLE")))) return true;
    // It refuses, or gives up by itself, when the servers are too busy.
    await node.call("CLUSTER", "FAILOVER").catch(() => {});
    await sleep(200);
    return false;
  };
  await until("a hand-over", succeeded, 40_000);
  await cluster.servers.failedOver(keyFor(resource), primary);
}

/** Hears when leases of a resource were renewed in this process, until it is disposed of. */
export function renewals(resource: string): Disposable & { longestGapMs(): number } {
  const times = [performance.now()];
  const hear = (event: unknown) => {
    if ((event as { resource: string }).resource === resource) times.push(performance.now());
  };
  channels.renewed.subscribe(hear);
  return {
    longestGapMs: () => {
      const all = [...times, performance.now()];
      return Math.max(...all.slice(1).map((at, i) => at - all[i]!));
    },
    [Symbol.dispose]: () => channels.renewed.unsubscribe(hear),
  };
}
