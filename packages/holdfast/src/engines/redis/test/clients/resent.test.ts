// A client may send a command twice by itself: ioredis repeats unanswered commands when it
// reconnects, and the engine sees only the answer to the repeat.
import assert from "node:assert/strict";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const KEY = "holdfast:job";

describeWithServer("a release that the client sends twice", (it) => {
  for (const client of CLIENT_NAMES) {
    it(`is no loss of the lease: run resolves (${client})`, async (redis) => {
      const { locks, loseAnswer } = await relayed(redis, client);
      const running = locks.run("job", { ttlMs: 30_000 }, async () => {
        await loseAnswer(async () => (await redis.admin.exists(KEY)) === 0);
        return "done";
      });
      assert.equal(await running, "done");
    });

    it(`is no loss even if a waiter holds the resource by then (${client})`, async (redis) => {
      const { locks, loseAnswer } = await relayed(redis, client);
      const other = redis.locks();
      let waiting: Promise<unknown> | undefined;
      const running = locks.run("job", { ttlMs: 30_000 }, async (lease) => {
        waiting = other.acquire("job");
        await redis.untilWaiters(other, "job", 1);
        const { token } = lease;
        await loseAnswer(async () => (await other.inspect("job")).holders[0]?.token !== token);
        return "done";
      });
      assert.equal(await running, "done");
      await waiting;
    });
  }

  it("does not end the next holder's grant if the lease had ended before", async (redis) => {
    const { locks, loseAnswer } = await relayed(redis, "ioredis");
    const lease = await locks.acquire("job", { ttlMs: 30_000, renew: false });
    const other = redis.locks();
    await redis.admin.del(KEY);
    const next = await other.acquire("job");
    const calls = await redis.calls("evalsha");
    await loseAnswer(async () => (await redis.calls("evalsha")) > calls);
    // The answers do not say whether the first release found the grant. The next holder keeps its
    // own.
    await lease.release();
    assert.ok(await other.check(next.sequencer));
  });

  it("is a failure of unknown effect for a caller of the engine itself", async (redis) => {
    const relay = await redis.relay();
    const engine = redis.engine({ port: relay.port, pushPort: redis.server.port });
    const held = claim("job");
    await engine.tryAcquire(held, now());
    relay.mute();
    const releasing = engine.release([{ ...held, tombstoneMs: 0 }], now());
    await until("it is released", async () => (await redis.admin.exists(KEY)) === 0);
    relay.cut();
    relay.mend();
    const [answer] = await releasing;
    assert.ok(
      answer?.kind === "failed" && answer.effect === "unknown",
      JSON.stringify(answer?.kind),
    );
    const [again] = await engine.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal(again?.kind, "gone", "the connection was not lost, so the answer counts");
  });
});

/** Locks behind a relay. loseAnswer drops answers until `arrived` gives true, and then cuts. */
async function relayed(redis: RedisTestServer, client: ClientName) {
  const relay = await redis.relay();
  const locks = redis.locks({ client, port: relay.port, pushPort: redis.server.port });
  const loseAnswer = async (arrived: () => Promise<boolean>) => {
    relay.mute();
    void until("the release has arrived", arrived, 20_000).then(() => {
      relay.cut();
      relay.mend();
    });
  };
  return { locks, loseAnswer };
}
