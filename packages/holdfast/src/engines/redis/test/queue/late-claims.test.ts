// With `replicas`, claims have a connection of their own. If only that connection hangs, a claim
// arrives after its release, and perhaps after the tombstone of its release has expired.
import assert from "node:assert/strict";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  describeWithServer,
  PROMPT,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const GONE = "{holdfast:a}:gone";
const REPLICAS = { wait: 1, timeoutMs: 10_000 };
const CALL = { callTimeoutMs: 300, ttlMs: 60_000, fair: "strict" } as const;

describeWithServer(
  "a claim whose connection hangs for longer than a tombstone lasts",
  (it) => {
    for (const client of CLIENT_NAMES) {
      for (const waitMs of [0, 300]) {
        it(`leaves no grant (${client}, waitMs ${waitMs})`, async (redis) => {
          const { locks, relay } = await setUp(redis, client);
          relay.hold();
          await assert.rejects(locks.acquire("a", { ...CALL, waitMs }), { code: "ENGINE" });
          await deleteTombstones(redis, 1);
          const before = await redis.calls("wait");
          relay.deliver();
          await until("the claim was run", async () => (await redis.calls("wait")) > before);
          await until("its grant was released", async () => {
            return !(await redis.admin.exists("holdfast:a"));
          });
          assert.ok(await redis.locks().tryAcquire("a"), "the resource is still held");
        });
      }

      it(`is not sent if it waited behind another call (${client})`, async (redis) => {
        const { locks, relay } = await setUp(redis, client);
        relay.hold();
        const count = 5;
        for (let i = 0; i < count; i++) {
          await assert.rejects(locks.acquire("a", { ...CALL, waitMs: 0 }), { code: "ENGINE" });
        }
        await deleteTombstones(redis, count);
        const before = await redis.calls("wait");
        relay.deliver();
        await until("the first claim was run", async () => (await redis.calls("wait")) > before);
        const lease = await locks.acquire("a", { waitMs: 10_000, ttlMs: 60_000 });
        // The first of the five, and the claim and heartbeats of this lease.
        assert.ok((await redis.calls("wait")) - before <= 3);
        assert.equal(await lease.release(), "released");
      });
    }
  },
  PROMPT,
);

async function setUp(redis: RedisTestServer, client: (typeof CLIENT_NAMES)[number]) {
  await redis.replicas(1);
  const relay = await redis.relay();
  const locks = redis.locks({ client, pushPort: relay.port, replicas: REPLICAS });
  await (await locks.acquire("warm up")).release();
  return { locks, relay };
}

/** Waits for so many releases and deletes their tombstones, as if two minutes had passed. */
async function deleteTombstones(redis: RedisTestServer, releases: number): Promise<void> {
  await until("all tombstones are there", async () => (await redis.admin.zcard(GONE)) === releases);
  await redis.admin.del(GONE);
}
