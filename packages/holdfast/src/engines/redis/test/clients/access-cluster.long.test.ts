// A Cluster user with the rights that docs/engines/redis.md lists, and no others.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ClusterServers } from "@holdfast/servers";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, redisEngine } from "../../index.js";
import { CLUSTER_RULES, REPLICAS_RULES, RULES } from "../support/rights.fixture.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES, type ClientName } from "../support/test-server.fixture.js";

const SECRET = "a password";
// Needed only while a slot moves: a client that is redirected sends ASKING to the new node.
const WHILE_MOVING = ["+asking"];

let cluster: TestCluster<ClusterServers>;
let users = 0;
let uses = 0;
const closers: (() => unknown)[] = [];

before(async () => {
  cluster = await TestCluster.cluster();
});
after(async () => {
  await Promise.allSettled(closers.map(async (close) => close()));
  await cluster[Symbol.asyncDispose]();
});

describe("access to a Cluster", () => {
  for (const client of CLIENT_NAMES) {
    it(`everything works with the documented rights alone (${client})`, async () => {
      const open = await asUser(client, [...RULES, ...CLUSTER_RULES]);
      await useEverything(open(), open(), 5_000);
    });

    it(`waiting for replicas works with the rights that the table adds for it (${client})`, async () => {
      const open = await asUser(client, [...RULES, ...CLUSTER_RULES, ...REPLICAS_RULES]);
      const locks = open({ wait: 1, timeoutMs: 1_000 });
      const lease = await locks.acquire("kept");
      await lease.renew();
      assert.equal(await lease.release(), "released");
    });
  }

  it("at least one client needs each of the documented rights", async () => {
    const rules = CLUSTER_RULES.filter((one) => !WHILE_MOVING.includes(one));
    const needed = await Promise.all(
      rules.map(async (rule) => {
        const others = [...RULES, ...CLUSTER_RULES].filter((one) => one !== rule);
        const all = CLIENT_NAMES.map(async (client) => {
          const open = await asUser(client, others);
          await useEverything(open(), open(), 1_500);
        });
        const outcomes = await Promise.allSettled(all);
        return outcomes.some(({ status }) => status === "rejected");
      }),
    );
    const unneeded = rules.filter((_, i) => !needed[i]);
    assert.deepEqual(unneeded, []);
  });
});

type Replicas = { wait: number; timeoutMs: number };

async function asUser(client: ClientName, rules: readonly string[]) {
  const username = `limited${++users}`;
  for (const server of cluster.servers.nodes) {
    const node = cluster.node(server);
    await node.call("ACL", "SETUSER", username, "on", `>${SECRET}`, ...rules);
    node.disconnect();
  }
  return (replicas?: Replicas) => {
    const own = client === "ioredis" ? ioRedis(username) : nodeRedis(username);
    const engine = redisEngine({ client: own, ...(replicas === undefined ? {} : { replicas }) });
    const locks = new Locks(engine);
    closers.push(() => locks.close());
    return locks;
  };
}

function ioRedis(username: string): RedisClient {
  const nodes = [{ host: "127.0.0.1", port: cluster.servers.ports[0]! }];
  const client = new Cluster(nodes, { redisOptions: { username, password: SECRET } });
  client.on("error", () => {});
  closers.push(() => client.disconnect());
  return client as unknown as RedisClient;
}

function nodeRedis(username: string): RedisClient {
  const socket = { host: "127.0.0.1", port: cluster.servers.ports[0]! };
  const user = { username, password: SECRET };
  const client = createCluster({ rootNodes: [{ ...user, socket }], defaults: user });
  client.on("error", () => {});
  const connected = client.connect().catch(() => {});
  closers.push(() => connected.then(() => client.destroy()));
  return client as unknown as RedisClient;
}

/** Uses everything that differs between a Cluster and a single server. */
async function useEverything(ours: Locks, other: Locks, waitMs: number): Promise<void> {
  await sleep(200);
  const name = `use ${++uses}`;
  const options = { waitMs, callTimeoutMs: waitMs };
  const lease = await ours.acquire(name, options);
  const waiting = other.acquire(name, options);
  waiting.catch(() => {});
  await until("it waits", async () => (await ours.inspect(name)).waiters.length === 1, waitMs);
  const started = performance.now();
  await lease.release();
  const next = await waiting;
  assert.ok(performance.now() - started < 500, "the grant was pushed");
  const listed = [];
  for await (const { resource } of ours.list()) listed.push(resource);
  assert.ok(listed.includes(name));
  assert.equal(await ours.revoke(name, { token: next.token }), "revoked");
  await until("the revocation was pushed", () => !next.held, 500);
  await next.release();
}
