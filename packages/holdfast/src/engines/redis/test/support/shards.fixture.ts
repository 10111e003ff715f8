import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers, RedisServer } from "@holdfast/servers";
import { channels } from "../../../../events.js";
import { until } from "../../../../test-support/until.fixture.js";
import { REDIS_DEFAULTS } from "../../options.js";
import { keyOf } from "../../protocol/keys.js";
import { SLOTS, slotOf } from "../../protocol/slots.js";
import type { TestCluster } from "./test-cluster.fixture.js";

const PRIMARIES = 3;

/**
 * Resource names that a new Cluster keeps in this shard. Each shard has a third of the slots, in
 * order.
 */
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

/** The primary and the replica of a resource, once the shard has recovered from earlier tests. */
export async function shardOf(
  cluster: TestCluster<ClusterServers>,
  resource: string,
): Promise<[RedisServer, RedisServer]> {
  let found: [RedisServer, RedisServer] | null = null;
  // Nodes learn of changes one after the other, so their answers may differ for a while.
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

/** Makes the replica take over without a failure of the primary. */
export async function handOver(
  cluster: TestCluster<ClusterServers>,
  resource: string,
): Promise<void> {
  const [primary, replica] = await shardOf(cluster, resource);
  const node = cluster.node(replica);
  const succeeded = async () => {
    if (/^master/.test(String(await node.call("ROLE")))) return true;
    // The replica refuses, or gives up, if the servers are too busy.
    await node.call("CLUSTER", "FAILOVER").catch(() => {});
    await sleep(200);
    return false;
  };
  await until("a hand-over", succeeded, 40_000);
  await cluster.servers.failedOver(keyFor(resource), primary);
}

/** Records when this process renews leases of the resource, until it is disposed of. */
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
