// One Cluster, whose shards fail one after the other.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers, RedisServer } from "@holdfast/servers";
import { Field } from "./field.fixture.js";
import { CLIENT_NAMES, until } from "./ground.fixture.js";
import { keyFor, namesIn, renewals } from "./shards.fixture.js";

let field: Field<ClusterServers>;

before(async () => {
  field = await Field.cluster();
  // By default all shards refuse to work while one of them has no primary.
  for (const node of field.servers.nodes) {
    await field.node(node).config("SET", "cluster-require-full-coverage", "no");
  }
});
after(async () => field[Symbol.asyncDispose]());

describe("a Cluster", () => {
  for (const client of CLIENT_NAMES) {
    it(`a shard that hangs costs other shards neither a lease nor a turn (${client})`, async () => {
      const [hung, first, second] = [
        ...namesIn(0, 1, `hung-${client}`),
        ...namesIn(1, 2, `fine-${client}`),
      ] as [string, string, string];
      const [server, replica] = await shardOf(hung);
      const ours = await field.locks({ client });
      const other = await field.locks();
      const ttlMs = 3_000;
      await ours.acquire(hung, { ttlMs });
      const lease = await ours.acquire(first, { ttlMs });
      using renewed = renewals(first);
      // It expires without a word, so only a heartbeat can bring the waiter in.
      await other.acquire(second, { ttlMs: 3_500, renew: false });
      const turns = [hung, second].map((name) => ours.acquire(name, { waitMs: 20_000 }));
      turns[0]!.catch(() => {});
      await sleep(100);
      // Nobody succeeds it, so that it lasts.
      for (const one of [replica, server]) one.pause();
      const started = performance.now();
      try {
        await turns[1];
        const tookMs = performance.now() - started;
        assert.ok(tookMs < 6_000, `its turn came after ${tookMs} ms`);
        await sleep(Math.max(0, 5_000 - tookMs));
        assert.ok(lease.held, "it was lost with the other shard");
        const gapMs = renewed.longestGapMs();
        assert.ok(gapMs < ttlMs - 300, `${gapMs} ms without a renewal`);
      } finally {
        for (const one of [server, replica]) one.resume();
      }
    });
  }
});

/** The primary of a resource and its replica, once what was done before is mended. */
async function shardOf(resource: string): Promise<[RedisServer, RedisServer]> {
  const look = async () => {
    const primary = await field.servers.primaryOf(keyFor(resource));
    const replica = await field.servers.replicaOf(primary);
    const role = String(await field.node(replica).call("ROLE"));
    return /^slave.*,connected,/.test(role) ? ([primary, replica] as const) : null;
  };
  await until("a whole shard", () => look().catch(() => null), 15_000);
  return [...(await look())!];
}
