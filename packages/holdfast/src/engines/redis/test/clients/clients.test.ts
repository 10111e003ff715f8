// Differences between clients: databases, protocols, settings, and commands that are sent twice.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { createClient } from "redis";
import type { Lease } from "../../../../core/holding/lease.js";
import type { EngineError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import type { IoRedisSubscriber } from "../../clients/ioredis/ioredis-client.js";
import { reconnect } from "../../clients/ioredis/reconnect.js";
import { type RedisClient, redisEngine } from "../../index.js";
import { keyOf } from "../../protocol/keys.js";
import {
  CLIENT_NAMES,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const AS_BUFFERS = { 36: Buffer, 43: Buffer, 58: String };

describeWithServer("clients", (it) => {
  it("a node-redis client that is not open causes an error that says so, and works once it is open", async (redis) => {
    const client = createClient({ socket: { port: redis.server.port } });
    client.on("error", () => {});
    await using locks = new Locks(redisEngine({ client }));
    const listing = async () => {
      for await (const _ of locks.list());
    };
    const refused = async () => {
      for (const call of [() => locks.acquire("a"), () => locks.inspect("a"), listing]) {
        await assert.rejects(call, (error: EngineError) => {
          assert.match(error.message, /is not open: await client\.connect\(\)/);
          const { effect, retryable, reason } = error;
          assert.deepEqual([effect, retryable, reason], ["none", false, "unreachable"]);
          return true;
        });
      }
    };
    await refused();
    await client.connect();
    await (await locks.acquire("a")).release();
    client.destroy();
    await refused();
  });

  for (const client of CLIENT_NAMES) {
    it(`locks in different databases are separate, and each wakes its own waiters (${client})`, async (redis) => {
      const [zero, three] = [redis.locks({ client }), redis.locks({ client, database: 3 })];
      const held = { zero: await zero.acquire("a"), three: await three.acquire("a") };
      const other = redis.locks({ client, database: 3 });
      const waiting = other.acquire("a");
      await redis.untilWaiters(three, "a", 1);
      assert.deepEqual((await zero.inspect("a")).waiters, []);
      await held.zero.release();
      await sleep(50);
      assert.equal((await three.inspect("a")).waiters.length, 1);
      await held.three.release();
      await waiting;
      assert.equal((await zero.inspect("a")).holders.length, 0);
    });

    it(`calls in progress when a connection breaks do not take effect twice (${client})`, async (redis) => {
      // ioredis sends unanswered commands again; node-redis rejects them.
      const relay = await redis.relay();
      const engine = redis.engine({ client, port: relay.port, pushPort: redis.server.port });
      const other = redis.engine();
      await engine.inspect("warm up", now());
      const brokenOff = async <T>(ask: () => Promise<T>): Promise<T | null> => {
        relay.mute();
        const asked = ask();
        // Long enough for the call to arrive on a busy machine. Only its answer must be lost.
        await sleep(300);
        relay.cut();
        relay.mend();
        return asked.catch(() => null);
      };
      const mine = claim("a");
      const granted = await brokenOff(() => engine.tryAcquire(mine, now()));
      assert.ok(granted === null || granted.kind === "granted");
      assert.equal((await other.inspect("a", now())).holders.length, 1);
      await brokenOff(() => engine.renew([{ ...mine, ttlMs: 5_000 }], now()));
      const waiter = claim("a");
      await brokenOff(() => engine.queue!.enqueue(waiter, now()));
      assert.equal((await other.inspect("a", now())).waiters.length, 1);
      await brokenOff(() => engine.queue!.heartbeat([waiter], now()));
      const { waiters, holders } = await other.inspect("a", now());
      assert.deepEqual([holders.length, waiters.length], [1, 1]);
      await brokenOff(() => engine.release([{ ...mine, tombstoneMs: 0 }], now()));
      // Released once: the waiter holds it now, and a second release of the first does not end
      // that.
      const [held] = (await other.inspect("a", now())).holders;
      assert.ok(held !== undefined && held.token > 0n);
      const [again] = await other.release([{ ...mine, tombstoneMs: 0 }], now());
      assert.equal(again?.kind, "gone");
      assert.equal((await other.inspect("a", now())).holders[0]?.token, held.token);
    });
  }

  it("ioredis that pauses before its next try is not disconnected again", async (redis) => {
    const client = redis.ioRedis({ ioredis: { retryStrategy: () => 100 } });
    await client.ping();
    let connects = 0;
    client.on("connect", () => connects++);
    await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await until("it pauses", () => client.status === "reconnecting");
    reconnect(client as unknown as IoRedisSubscriber);
    await until("it is back", () => client.status === "ready");
    await sleep(300);
    assert.equal(connects, 1);
  });

  it("a lease whose client sends everything twice is not lost", async (redis) => {
    const relay = await redis.relay();
    const ours = redis.locks({ client: "ioredis", port: relay.port });
    const other = redis.locks();
    const lease = await ours.acquire("a", { ttlMs: 5_000 });
    for (let i = 0; i < 5; i++) {
      await sleep(200);
      relay.cut();
      relay.mend();
      assert.equal(await other.tryAcquire("a"), null);
    }
    assert.ok(lease.held);
    assert.equal(await lease.release(), "released");
  });

  for (const resp of [2, 3] as const) {
    it(`everything works over RESP${resp} with node-redis`, async (redis) => {
      const open = () => redis.locks({ client: "node-redis", resp });
      await useEverything(redis, open(), open());
    });
  }

  for (const resp of [2, 3] as const) {
    it(`everything works where node-redis gives Buffers over RESP${resp}`, async (redis) => {
      const open = () => redis.locks({ client: "node-redis", resp, typeMapping: AS_BUFFERS });
      await useEverything(redis, open(), open());
    });
  }

  it("a client that gives Buffers leaves nothing behind", async (redis) => {
    const client = redis.nodeRedis() as unknown as ReturnType<typeof createClient>;
    const mapped = client.withTypeMapping(AS_BUFFERS) as unknown as RedisClient;
    await using locks = new Locks(redisEngine({ client: mapped }));
    const lease = await locks.tryAcquire("a");
    assert.equal(await lease?.release(), "released");
    await using next = await locks.acquire("a", { waitMs: 2_000 });
    assert.equal((await locks.inspect("a")).holders[0]?.token, next.token);
  });

  it("everything works with ioredis' numbers as strings", async (redis) => {
    const open = () => redis.locks({ ioredis: { stringNumbers: true } });
    await useEverything(redis, open(), open());
  });

  it("closing while ioredis resubscribes leaves no unhandled rejection", async (redis) => {
    const pushRelay = await redis.relay();
    const client: Redis = redis.ioRedis({ pushPort: pushRelay.port });
    const subscribers: Redis[] = [];
    const duplicate = client.duplicate.bind(client);
    client.duplicate = (override) => {
      const subscriber = duplicate(override);
      subscribers.push(subscriber);
      return subscriber;
    };
    const engine = redisEngine({ client: client as RedisClient });
    await engine.queue!.enqueue(claim("a"), now());
    const [subscriber] = subscribers;
    assert.ok(subscriber !== undefined);
    // The subscriber has reconnected and sent SUBSCRIBE when the answers stop.
    subscriber.once("ready", () => pushRelay.mute());
    pushRelay.cut();
    pushRelay.mend();
    await until("it is back", () => subscriber.status === "ready");
    await sleep(30);
    const unhandled: unknown[] = [];
    const hear = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", hear);
    await engine.close();
    await sleep(50);
    process.off("unhandledRejection", hear);
    assert.deepEqual(unhandled, []);
  });

  it("a keyPrefix of ioredis works, or is refused", async (redis) => {
    const open = () => redis.locks({ ioredis: { keyPrefix: "app:" } });
    let ours: Locks;
    try {
      ours = open();
    } catch (error) {
      assert.equal((error as { code: string }).code, "USAGE");
      return;
    }
    await useEverything(redis, ours, open());
  });

  it("names that Redis could read as syntax are safe and distinct, as keys too", async (redis) => {
    const names = [
      ...[
        "a",
        "a:b",
        "{a}",
        "{a",
        "a}",
        "a{b}c",
        "{}",
        "%7Ba%7D",
        "%257B",
        "{a}:queue",
        "{a}:fence",
      ],
      ...[
        "*",
        "?",
        "[ab]",
        "a*",
        "\\*",
        "new\nline",
        "cr\r\nlf",
        "tab\t",
        " ",
        "a b",
        '"',
        "'",
        "\\",
      ],
      ...["käse", "ka\u0308se", "KÄSE", "锁", "🔒", "a\u200bb", "x".repeat(1_024), "é".repeat(512)],
      ...["holdfast:a", "hf:s", "hf:x:1", "0", "-1", "true", "$1", "-ERR", "+OK", "*1"],
    ];
    const [ours, other] = [redis.locks(), redis.locks({ client: "node-redis" })];
    const keys = names.map((name) => keyOf("holdfast:", name));
    assert.equal(new Set(keys).size, names.length);
    const leases = await Promise.all(names.map((name) => ours.acquire(name)));
    for (const [i, name] of names.entries()) {
      assert.equal(await redis.admin.type(keys[i]!), "string", name);
      assert.equal(await other.tryAcquire(name), null, name);
    }
    const listed = new Set<string>();
    for await (const view of other.list()) listed.add(view.resource);
    assert.deepEqual(listed, new Set(names));
    // Each is handed to its own waiter, in both modes.
    const waits = names.map((name) => other.acquire(name, { mode: "shared" }));
    await until("all are queued", async () => {
      const queues = await redis.admin.keys("*:queue");
      return queues.length >= names.length;
    });
    for (const [i, lease] of leases.entries()) {
      await lease.release();
      assert.equal((await waits[i]!).resource, names[i]);
    }
    for (const wait of waits) await (await wait).release();
    const left = (await redis.admin.keys("*")).filter((key) => !key.endsWith(":fence"));
    assert.deepEqual(left, []);
  });
});

async function useEverything(redis: RedisTestServer, ours: Locks, other: Locks): Promise<void> {
  let next!: Lease;
  // The grant is pushed: a heartbeat would find it a second later.
  await soon(500, async (attempt) => {
    if (attempt > 0) await next.release();
    const lease = await ours.acquire("a");
    await lease.renew();
    assert.ok(await other.check(lease.sequencer));
    const waiting = other.acquire("a");
    await redis.untilWaiters(ours, "a", 1);
    const tookMs = await timed(async () => {
      assert.equal(await lease.release(), "released");
      await waiting;
    });
    next = await waiting;
    assert.ok(next.token > lease.token);
    return tookMs;
  });
  const { holders } = await ours.inspect("a");
  assert.deepEqual([holders[0]?.token, holders[0]?.revoked], [next.token, false]);
  const listed = [];
  for await (const view of ours.list()) listed.push(view.resource);
  assert.deepEqual(listed, ["a"]);
  assert.equal(await ours.revoke("a", { token: next.token }), "revoked");
  await until("the revocation is heard", () => !next.held, 5_000);
  await next.release();
  const readers = [
    await ours.acquire("b", { mode: "shared", limit: 2 }),
    await other.acquire("b", { mode: "shared", limit: 2 }),
  ];
  assert.equal(await ours.tryAcquire("b", { mode: "shared", limit: 2 }), null);
  for (const reader of readers) assert.equal(await reader.release(), "released");
}
