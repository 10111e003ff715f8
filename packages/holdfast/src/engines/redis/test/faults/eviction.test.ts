// If Redis may evict a held lock, the process emits one warning.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Cluster } from "ioredis";
import { createCluster } from "redis";
import { connect } from "../../../../connect.js";
import type { Engine } from "../../../../engine.js";
import { channels } from "../../../../events.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, redisEngine } from "../../index.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES, RedisTestServer, type TestBody } from "../support/test-server.fixture.js";

const SAID_MS = 300;

interface Warning extends Error {
  readonly code?: string;
}

/** One after the other, because a warning does not say which test caused it. */
describe("eviction", () => {
  const itWithServer = (title: string, body: TestBody) =>
    it(title, async () => {
      await using redis = await RedisTestServer.start();
      await body(redis);
    });

  for (const client of CLIENT_NAMES) {
    for (const policy of ["allkeys-lru", "volatile-ttl"]) {
      itWithServer(
        `the policy ${policy} causes one warning, with the reason (${client})`,
        async (redis) => {
          await redis.admin.config("SET", "maxmemory-policy", policy);
          const said = await warningsOf(async (said) => {
            const locks = redis.locks({ client });
            for (let i = 0; i < 3; i++) await (await locks.acquire("a")).release();
            await until("the warning comes", () => said.length > 0);
          });
          assert.equal(said.length, 1);
          assert.equal(said[0]!.code, "HOLDFAST_EVICTION");
          assert.ok(said[0]!.message.includes(policy));
          assert.match(said[0]!.message, /evict a lock that is held.*two holders.*noeviction/s);
        },
      );
    }
  }

  it("a Cluster that evicts causes a warning even if the client connects later", async () => {
    await using cluster = await TestCluster.cluster();
    // On all nodes: a client that has just connected need not know all of them yet.
    for (const node of cluster.servers.nodes) {
      await cluster.node(node).config("SET", "maxmemory-policy", "allkeys-lru");
    }
    const port = cluster.servers.ports[1]!;
    const ioredis = new Cluster([{ host: "127.0.0.1", port }], { lazyConnect: true });
    const nodeRedis = createCluster({ rootNodes: [{ socket: { host: "127.0.0.1", port } }] });
    for (const client of [ioredis, nodeRedis]) client.on("error", () => {});
    const engines: Engine[] = [];
    try {
      for (const client of [ioredis, nodeRedis as unknown as RedisClient]) {
        const engine = redisEngine({ client });
        engines.push(engine);
        const said = await warningsOf(async (said) => {
          const asked = engine.tryAcquire(claim("a"), now()).catch(() => {});
          if (client !== ioredis) await nodeRedis.connect();
          await asked;
          await until("the warning comes", () => said.length > 0, 20_000);
        });
        assert.equal(said.length, 1);
      }
    } finally {
      for (const engine of engines) await engine.close();
      ioredis.disconnect();
      if (nodeRedis.isOpen) nodeRedis.destroy();
    }
  });

  itWithServer("the policy noeviction causes no warning, by client or by URL", async (redis) => {
    const said = await warningsOf(async () => {
      await (await redis.locks().acquire("a")).release();
      await using byUrl = await connect(redis.server.url);
      await (await byUrl.acquire("a")).release();
    });
    assert.deepEqual(said, []);
  });

  itWithServer(
    "a user without the right to INFO can lock, and an event reports the failed check",
    async (redis) => {
      await limited(redis, "-info");
      const told: unknown[] = [];
      const hear = (event: unknown) => told.push((event as { during: string }).during);
      channels.failed.subscribe(hear);
      try {
        const locks = redis.locks({ user: ["limited", "secret"], client: "node-redis" });
        await (await locks.acquire("a")).release();
        await until("the event comes", () => told.includes("eviction check"));
      } finally {
        channels.failed.unsubscribe(hear);
      }
    },
  );
});

async function limited(redis: RedisTestServer, ...rules: string[]): Promise<void> {
  const all = ["on", ">secret", "~*", "&*", "+@all", ...rules];
  await redis.admin.call("ACL", "SETUSER", "limited", ...all);
}

async function warningsOf(work: (said: readonly Warning[]) => Promise<void>): Promise<Warning[]> {
  const said: Warning[] = [];
  const hear = (warning: Warning) => {
    if (warning.code === "HOLDFAST_EVICTION") said.push(warning);
  };
  process.on("warning", hear);
  try {
    await work(said);
    await sleep(SAID_MS);
  } finally {
    process.off("warning", hear);
  }
  return said;
}
