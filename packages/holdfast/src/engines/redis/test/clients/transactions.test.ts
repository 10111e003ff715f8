// A transaction that the program holds open on the client that the engine uses. The server answers
// "QUEUED" to every command on that connection, and runs them at EXEC or never.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../../../../errors.js";
import { channels } from "../../../../events.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, redisEngine } from "../../index.js";
import { keysOf } from "../../protocol/keys.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

interface Transaction {
  readonly client: RedisClient;
  begin(): Promise<unknown>;
  exec(): Promise<unknown>;
  discard(): Promise<unknown>;
}

type Sends = { sendCommand(words: readonly string[]): Promise<unknown> };

const METHODS: Readonly<Record<string, (redis: RedisTestServer) => Transaction>> = {
  "ioredis' multi({ pipeline: false })": (redis) => {
    const client = redis.ioRedis();
    return {
      client,
      begin: () => client.multi({ pipeline: false }),
      exec: () => client.exec(),
      discard: () => client.discard(),
    };
  },
  "MULTI by ioredis' call": (redis) => {
    const client = redis.ioRedis();
    return { client, ...byHand((word) => client.call(word)) };
  },
  "MULTI by node-redis' sendCommand": (redis) => {
    const client = redis.nodeRedis();
    return { client, ...byHand((word) => (client as unknown as Sends).sendCommand([word])) };
  },
};

function byHand(say: (word: string) => Promise<unknown>) {
  return { begin: () => say("MULTI"), exec: () => say("EXEC"), discard: () => say("DISCARD") };
}

const KEY = "holdfast:x";
const unknownEffect = (error: unknown) =>
  error instanceof EngineError && error.effect === "unknown" && /MULTI/.test(error.message);

for (const [way, opened] of Object.entries(METHODS)) {
  describeWithServer(`a transaction held open by ${way}`, (it) => {
    it("loses a lease before anybody else is granted its resource", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const other = redis.locks();
      const lease = await ours.acquire("x", { ttlMs: 1_500, renewEveryMs: 400 });
      await transaction.begin();
      const next = await other.acquire("x", { waitMs: 30_000 });
      assert.equal(lease.held, false);
      assert.equal((lease.signal.reason as { reason: string }).reason, "unconfirmed");
      await transaction.discard();
      await sleep(200);
      assert.ok(next.held && !lease.held);
      assert.equal(await lease.release(), "gone");
      assert.equal(await next.release(), "released");
      const again = await ours.acquire("x", { ttlMs: 1_500, renewEveryMs: 100 });
      await sleep(400);
      await again.renew();
      assert.equal(await again.release(), "released");
    });

    it("loses many leases of all kinds that are renewed together", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const terms = { ttlMs: 1_500, renewEveryMs: 400 };
      const kinds = [{}, { mode: "shared" }, { lockDelayMs: 100 }, { ttlMs: 1_600 }] as const;
      const leases = await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          ours.acquire(`x${i}`, { ...terms, ...kinds[i % kinds.length] }),
        ),
      );
      await transaction.begin();
      await until("all keys have ended", async () => {
        const keys = await redis.admin.keys("holdfast:*");
        assert.ok(keys.length > 0 || leases.every((lease) => !lease.held), "held without a key");
        return keys.length === 0;
      });
      assert.deepEqual(
        leases.filter((lease) => lease.held).map((lease) => lease.resource),
        [],
      );
      await transaction.discard();
    });

    it("does not report a release that was not run", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const lease = await ours.acquire("x");
      await transaction.begin();
      await assert.rejects(lease.release(), unknownEffect);
      assert.equal(await redis.admin.exists(KEY), 1);
      await transaction.exec();
      assert.equal(await redis.admin.exists(KEY), 0);
    });

    it("fails an acquire, which leaves nothing behind at EXEC", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const waiting = { waitMs: 5_000 };
      await (await ours.acquire("warm up")).release();
      await transaction.begin();
      const cleanedUp = cleanUps("late", 3);
      await Promise.all([
        assert.rejects(ours.tryAcquire("late"), unknownEffect),
        assert.rejects(ours.acquire("late", { ...waiting, fair: "strict" }), unknownEffect),
        assert.rejects(ours.acquire("late", { ...waiting, mode: "shared" }), unknownEffect),
      ]);
      await cleanedUp;
      await transaction.exec();
      assert.equal(await redis.admin.exists(...keysOf("holdfast:late").slice(0, 4)), 0);
      // All three were run at EXEC, and so were the releases that followed them.
      assert.equal(await redis.admin.zcard("{holdfast:late}:gone"), 3);
      const lease = await ours.acquire("late", waiting);
      assert.equal(await lease.release(), "released");
    });

    it("fails an acquire, which leaves nothing behind at DISCARD", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      await (await ours.acquire("warm up")).release();
      await transaction.begin();
      const cleanedUp = cleanUps("never", 1);
      await assert.rejects(ours.acquire("never", { waitMs: 5_000 }), unknownEffect);
      await cleanedUp;
      await transaction.discard();
      assert.deepEqual(await redis.admin.keys("*holdfast:never*"), []);
      const lease = await ours.tryAcquire("never");
      assert.equal(await lease?.release(), "released");
    });

    it("runs renewals at EXEC that revive no grant", async (redis) => {
      const transaction = opened(redis);
      const engine = redisEngine({ client: transaction.client });
      const [expired, succeeded] = [claim("x", { ttlMs: 300 }), claim("y", { ttlMs: 300 })];
      for (const one of [expired, succeeded]) await engine.tryAcquire(one, now());
      await transaction.begin();
      const refs = [expired, succeeded].map((one) => ({ ...one, ttlMs: 60_000 }));
      for (const batch of [refs, ...refs.map((ref) => [ref])]) {
        for (const answer of await engine.renew(batch, now())) {
          assert.ok(answer.kind === "failed" && unknownEffect(answer.error), answer.kind);
        }
      }
      await until("both have ended", async () => (await redis.admin.exists(KEY, "holdfast:y")) < 1);
      const next = await redis.locks().acquire("y");
      await transaction.exec();
      assert.equal(await redis.admin.exists(KEY), 0);
      assert.ok((await redis.admin.pttl("holdfast:y")) <= 30_000);
      assert.equal(await next.release(), "released");
      await engine.close();
    });

    it("costs a waiter some heartbeats, but not its place or its turn", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const other = redis.locks();
      const lease = await other.acquire("x");
      const waiting = ours.acquire("x", { waitMs: 20_000 });
      await redis.untilWaiters(other, "x", 1);
      await transaction.begin();
      await sleep(2_500);
      await transaction.discard();
      await lease.release();
      const next = await waiting;
      await next.renew();
      assert.equal(await next.release(), "released");
    });

    it("removes a waiter that gave up from the queue at EXEC", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const other = redis.locks();
      const lease = await other.acquire("left");
      // A timeout; or the failure, if a heartbeat was sent into the transaction.
      const waiting = assert.rejects(ours.acquire("left", { waitMs: 3_000 }), {
        code: /^(ACQUIRE_TIMEOUT|ENGINE)$/,
      });
      await redis.untilWaiters(other, "left", 1);
      await transaction.begin();
      const cleanedUp = cleanUps("left", 1);
      await waiting;
      await cleanedUp;
      assert.equal((await other.inspect("left")).waiters.length, 1);
      await transaction.exec();
      assert.equal((await other.inspect("left")).waiters.length, 0);
      assert.equal(await lease.release(), "released");
      assert.equal(await redis.admin.exists(...keysOf("holdfast:left").slice(0, 4)), 0);
    });

    it("fails check, revoke, inspect and list instead of guessing", async (redis) => {
      const transaction = opened(redis);
      await using ours = new Locks(redisEngine({ client: transaction.client }));
      const lease = await ours.acquire("x");
      await transaction.begin();
      const list = async () => {
        for await (const view of ours.list()) assert.fail(view.resource);
      };
      const { token, sequencer } = lease;
      await assert.rejects(ours.check(sequencer), unknownEffect);
      await assert.rejects(ours.revoke("x", { token }), unknownEffect);
      await assert.rejects(ours.inspect("x"), unknownEffect);
      await assert.rejects(list(), unknownEffect);
      await transaction.discard();
      assert.ok(await ours.check(sequencer));
      assert.equal(await lease.release(), "released");
    });
  });
}

/** Waits for events that report this many claims on the resource which could not be released. */
async function cleanUps(resource: string, count: number): Promise<void> {
  let failed = 0;
  const hear = (event: unknown) => {
    const { during, resource: which } = event as { during: string; resource?: string };
    if (during === "clean-up" && which === resource) failed++;
  };
  channels.failed.subscribe(hear);
  try {
    await until(`${count} clean-ups of ${resource} have failed`, () => failed >= count);
  } finally {
    channels.failed.unsubscribe(hear);
  }
}
