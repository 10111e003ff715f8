// A release whose next holder waits in the same process: the answer carries its grant, and nothing
// is pushed.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { CLIENT_NAMES, describeWithServer } from "../support/test-server.fixture.js";

describeWithServer("own waiters", (it) => {
  for (const client of CLIENT_NAMES) {
    it(`are granted by the answer to the release (${client})`, async (redis) => {
      const pushRelay = await redis.relay();
      const ours = redis.engine({ client, pushPort: pushRelay.port });
      const holder = claim("a");
      const [first, second] = [claim("a"), claim("a", { ttlMs: 60_000, tokens: 4 })];
      const told: [string, Granted][] = [];
      ours.queue!.onGrant((waiter, granted) => told.push([waiter.grantId, granted]));
      await ours.queue!.enqueue(holder, now());
      for (const waiter of [first, second]) await ours.queue!.enqueue(waiter, now());
      pushRelay.hang();
      for (const done of [holder, first]) {
        const [answer] = await ours.release([{ ...done, tombstoneMs: 0 }], now());
        assert.equal(answer?.kind, "released");
      }
      assert.deepEqual(
        told.map(([grantId, { tokens }]) => [grantId, tokens]),
        [
          [first.grantId, 1],
          [second.grantId, 4],
        ],
      );
      assert.ok(told[1]![1].token > told[0]![1].token);
    });

    it(`are valid from their last heartbeat, however late the answer is (${client})`, async (redis) => {
      const main = await redis.relay();
      const ours = redis.engine({ client, port: main.port });
      const [holder, waiter] = [claim("a"), claim("a")];
      const told: Granted[] = [];
      ours.queue!.onGrant((_, granted) => told.push(granted));
      await ours.queue!.enqueue(holder, now());
      await ours.queue!.enqueue(waiter, now());
      const beat = now();
      assert.equal((await ours.queue!.heartbeat([waiter], beat))[0]?.kind, "queued");
      main.hang();
      await sleep(100);
      const released = ours.release([{ ...holder, tombstoneMs: 0 }], now());
      await sleep(100);
      main.mend();
      await released;
      assert.equal(told[0]?.since, beat.startedAt);
      assert.ok(told[0].ttlMs <= 3_000, "it lives for one claim window until it is renewed");
    });

    it(`find their grant by a heartbeat if the answer was lost (${client})`, async (redis) => {
      const main = await redis.relay();
      const ours = redis.locks({ client, port: main.port });
      const other = redis.locks();
      const held = await ours.acquire("a", { fair: "strict" });
      const waiting = ours.acquire("a", { fair: "strict", ttlMs: 30_000 });
      await redis.untilWaiters(other, "a", 1);
      // The same connection answers this after the claim. Others may see the waiter sooner.
      await ours.inspect("a");
      main.mute();
      const released = held.release();
      await redis.untilWaiters(other, "a", 0);
      main.cut();
      main.mend();
      // ioredis repeats the release by itself, and the repeat finds the next holder.
      assert.equal(await released, "released");
      const lease = await waiting;
      assert.ok(lease.held);
      assert.equal((await other.inspect("a")).holders[0]?.token, lease.token);
    });

    it(`leave nothing behind if they give up before the answer comes (${client})`, async (redis) => {
      const main = await redis.relay();
      const ours = redis.locks({ client, port: main.port });
      const other = redis.locks();
      await soon(1_500, async (attempt) => {
        const name = `a${attempt}`;
        const held = await ours.acquire(name, { fair: "strict" });
        const giveUp = new AbortController();
        const waiting = ours.acquire(name, { fair: "strict", signal: giveUp.signal });
        await redis.untilWaiters(other, name, 1);
        main.hang();
        const released = held.release();
        await sleep(20);
        giveUp.abort(new Error("no longer"));
        await assert.rejects(waiting, /no longer/);
        main.mend();
        assert.equal(await released, "released");
        return timed(() => other.acquire(name, { waitMs: 40_000 }));
      });
    });
  }

  it("leave no grant behind if their engine closes at the same time", async (redis) => {
    const ours = redis.engine();
    const [holder, waiter] = [claim("a"), claim("a")];
    for (const one of [holder, waiter]) await ours.queue!.enqueue(one, now());
    const released = ours.release([{ ...holder, tombstoneMs: 0 }], now());
    await ours.close();
    assert.equal((await released)[0]?.kind, "released");
    assert.deepEqual((await redis.engine().inspect("a", now())).holders, []);
  });
});
