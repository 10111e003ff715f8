// Pushed grants, and every way in which a message can be late, lost or repeated.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { CLIENT_NAMES, describeWithServer } from "../support/test-server.fixture.js";

describeWithServer("schedules", (it) => {
  for (const client of CLIENT_NAMES) {
    it(`a pushed grant is valid from the heartbeat before it, however late the push comes (${client})`, async (redis) => {
      const main = await redis.relay();
      const pushRelay = await redis.relay();
      const ours = redis.engine({ client, port: main.port, pushPort: pushRelay.port });
      const other = redis.engine();
      const holder = claim("a");
      await other.tryAcquire(holder, now());
      const waiter = claim("a", { ttlMs: 60_000 });
      const grants: Granted[] = [];
      ours.queue!.onGrant((_, granted) => grants.push(granted));
      const first = now();
      assert.equal((await ours.queue!.enqueue(waiter, first)).kind, "queued");
      const second = now();
      assert.equal((await ours.queue!.heartbeat([waiter], second))[0]?.kind, "queued");
      // A third heartbeat is sent before the push arrives, and run after the grant was made.
      main.hang();
      pushRelay.hang();
      await sleep(100);
      const third = now();
      const beaten = ours.queue!.heartbeat([waiter], third);
      await other.release([{ ...holder, tombstoneMs: 0 }], now());
      await sleep(100);
      pushRelay.mend();
      await until("the push arrives", () => grants.length === 1);
      assert.equal(grants[0]!.since, second.startedAt);
      assert.ok(grants[0]!.ttlMs <= 3_000, "it lives for one claim window until it is renewed");
      main.mend();
      const [answer] = await beaten;
      assert.equal(answer?.kind, "granted");
      assert.equal((answer as Granted).since, third.startedAt);
      assert.equal((answer as Granted).token, grants[0]!.token);
    });

    it(`a claim that arrives after its own withdrawal leaves nothing behind (${client})`, async (redis) => {
      // The claim waits for the subscription, the withdrawal does not. Both are answered at once.
      const main = await redis.relay();
      const pushRelay = await redis.relay();
      await soon(1_500, async (attempt) => {
        const name = `a${attempt}`;
        const ours = redis.locks({ client, port: main.port, pushPort: pushRelay.port });
        await ours.inspect("warm up");
        pushRelay.hang();
        const waiting = assert.rejects(ours.acquire(name, { waitMs: 100, fair: "strict" }));
        await sleep(50);
        main.hang();
        await sleep(150);
        pushRelay.mend();
        await sleep(150);
        main.mend();
        await waiting;
        return timed(() => redis.locks().acquire(name, { waitMs: 20_000 }));
      });
    });

    it(`a push that comes after its grant has ended makes no second holder (${client})`, async (redis) => {
      const main = await redis.relay();
      const pushRelay = await redis.relay();
      const ours = redis.locks({ client, port: main.port, pushPort: pushRelay.port });
      const other = redis.locks();
      const held = await other.acquire("a");
      let won = false;
      const waiting = ours.acquire("a", { ttlMs: 500, waitMs: 20_000 });
      void waiting.then(() => {
        won = true;
      });
      await redis.untilWaiters(other, "a", 1);
      main.hang();
      pushRelay.hang();
      await sleep(50);
      await held.release();
      // The pushed grant expires unclaimed, and another waiter is promoted.
      const next = await other.acquire("a", { waitMs: 20_000, fair: "strict" });
      pushRelay.mend();
      await sleep(200);
      assert.equal(won, false, "the late message was taken for a grant");
      assert.ok(next.held);
      main.mend();
      await sleep(200);
      assert.equal(won, false);
      await next.release();
      const lease = await waiting;
      assert.ok(lease.token > next.token);
    });

    it(`a lost push delays the waiter by one heartbeat (${client})`, async (redis) => {
      // The server still counts the subscriber, so it makes the grant, and the message is lost.
      await soon(1_800, async (attempt) => {
        const name = `a${attempt}`;
        const pushRelay = await redis.relay();
        const ours = redis.locks({ client, pushPort: pushRelay.port });
        const other = redis.locks();
        const held = await other.acquire(name);
        const waiting = ours.acquire(name);
        await redis.untilWaiters(other, name, 1);
        pushRelay.hang();
        const tookMs = await timed(async () => {
          await held.release();
          await sleep(20);
          pushRelay.cut();
          await waiting;
        });
        assert.ok((await waiting).held);
        return tookMs;
      });
    });

    it(`a subscriber that is cut off between enqueue and grant delays its waiter by one heartbeat (${client})`, async (redis) => {
      await soon(1_800, async (attempt) => {
        const name = `a${attempt}`;
        const pushRelay = await redis.relay();
        const ours = redis.locks({ client, pushPort: pushRelay.port });
        const other = redis.locks();
        const held = await other.acquire(name);
        const waiting = ours.acquire(name);
        await redis.untilWaiters(other, name, 1);
        pushRelay.cut();
        await sleep(50);
        return timed(async () => {
          await held.release();
          await waiting;
        });
      });
    });

    it(`a subscriber that was killed subscribes again, and pushes arrive again (${client})`, async (redis) => {
      const ours = redis.locks({ client });
      const other = redis.locks();
      const held = await other.acquire("a");
      const waiting = ours.acquire("a");
      await redis.untilWaiters(other, "a", 1);
      await redis.admin.call("CLIENT", "KILL", "TYPE", "pubsub");
      await held.release();
      const lease = await waiting;
      await lease.release();
      const own = async () => (await redis.admin.pubsub("CHANNELS", "*push.*")).length >= 2;
      await until("both listen again", own);
      await soon(500, async (attempt) => {
        const name = `again${attempt}`;
        const again = await other.acquire(name);
        const next = ours.acquire(name);
        await redis.untilWaiters(other, name, 1);
        return timed(async () => {
          await again.release();
          await next;
        });
      });
    });

    it(`a push that is delivered again changes nothing (${client})`, async (redis) => {
      const heard: [channel: string, message: string][] = [];
      const spy = redis.admin.duplicate();
      await spy.psubscribe("*push.*");
      spy.on("pmessage", (_, channel, message) => heard.push([channel, message]));
      const ours = redis.locks({ client });
      const other = redis.locks();
      const held = await other.acquire("a");
      const waiting = ours.acquire("a");
      await redis.untilWaiters(other, "a", 1);
      await held.release();
      const lease = await waiting;
      const repeat = () => redis.admin.publish(...heard[0]!);
      await repeat();
      await sleep(20);
      assert.ok(lease.held);
      await lease.release();
      await repeat();
      const between = await other.acquire("a");
      let won = false;
      const next = ours.acquire("a").then((lease) => {
        won = true;
        return lease;
      });
      await redis.untilWaiters(other, "a", 1);
      await repeat();
      await sleep(100);
      assert.equal(won, false, "an old message was taken for a new grant");
      await between.release();
      assert.ok((await next).token > between.token);
      spy.disconnect();
    });

    it(`a release that meets an abort leaves nothing behind, 100 times (${client})`, async (redis) => {
      const ours = redis.locks({ client });
      const other = redis.locks();
      const wins = { grants: 0, aborts: 0 };
      for (let i = 0; i < 100; i++) {
        const held = await other.acquire("a");
        const gone = new AbortController();
        const waiting = ours.acquire("a", { signal: gone.signal, fair: "strict" });
        await redis.untilWaiters(other, "a", 1);
        const released = held.release();
        // Sometimes this is before the push arrives, and sometimes after it.
        if (i % 4 > 0) await sleep((i % 4) - 1);
        gone.abort(new Error("enough"));
        const [outcome] = await Promise.allSettled([waiting, released]);
        if (outcome.status === "fulfilled") {
          wins.grants++;
          await outcome.value.release();
        } else {
          wins.aborts++;
          assert.equal(outcome.reason.message, "enough");
        }
        // A grant that is left behind blocks the resource for a claim window of 3 s, or for its
        // ttl.
        const next = await other.acquire("a", { waitMs: 2_500 });
        await next.release();
      }
      assert.ok(wins.aborts > 0, JSON.stringify(wins));
      const { holders, waiters } = await other.inspect("a");
      assert.deepEqual([holders, waiters], [[], []]);
    });

    for (const how of ["tryAcquire", "enqueue"] as const) {
      it(`${how} that arrives after its release is refused (${client})`, async (redis) => {
        const main = await redis.relay();
        const ours = redis.engine({ client, port: main.port });
        const other = redis.engine();
        await ours.inspect("warm up", now());
        const late = claim("a");
        main.hang();
        const asked =
          how === "enqueue" ? ours.queue!.enqueue(late, now()) : ours.tryAcquire(late, now());
        await sleep(20);
        await other.release([{ ...late, tombstoneMs: 60_000 }], now());
        main.mend();
        assert.equal((await asked).kind, "gone");
        assert.equal((await other.tryAcquire(claim("a"), now())).kind, "granted");
      });
    }
  }

  it("a paused process at the head of the queue delays the next waiter by one claim window", async (redis) => {
    const other = redis.locks();
    await soon(4_800, async (attempt) => {
      const name = `a${attempt}`;
      const held = await other.acquire(name);
      const options = JSON.stringify({ waitMs: 60_000, ttlMs: 30_000 });
      const paused = redis.child("waiter", [redis.server.url, name, options]);
      assert.equal(await paused.line(), "ready");
      await redis.untilWaiters(other, name, 1);
      paused.process.kill("SIGSTOP");
      const behind = redis.locks().acquire(name, { ttlMs: 30_000 });
      await redis.untilWaiters(other, name, 2);
      const tookMs = await timed(async () => {
        await held.release();
        await behind;
      });
      assert.ok(tookMs > 2_500, `the next one got in after ${tookMs} ms`);
      const lease = await behind;
      paused.process.kill("SIGCONT");
      await sleep(300);
      assert.ok(lease.held, "the paused process took the resource");
      await lease.release();
      const [word, token] = ((await paused.line()) ?? "").split(" ");
      assert.equal(word, "held");
      assert.ok(BigInt(token!) > lease.token);
      return tookMs;
    });
  });

  it("a killed process at the head of the queue delays nobody", async (redis) => {
    const other = redis.locks();
    await soon(700, async (attempt) => {
      const name = `a${attempt}`;
      const held = await other.acquire(name);
      const killed = redis.child("waiter", [redis.server.url, name, "{}"]);
      assert.equal(await killed.line(), "ready");
      await redis.untilWaiters(other, name, 1);
      const behind = redis.locks().acquire(name);
      await redis.untilWaiters(other, name, 2);
      await killed.kill();
      await sleep(50);
      return timed(async () => {
        await held.release();
        await behind;
      });
    });
  });

  it("a holder that is paused past its ttl finds its lease lost, and ends no other grant", async (redis) => {
    const other = redis.locks();
    const options = JSON.stringify({ ttlMs: 600 });
    const paused = redis.child("waiter", [redis.server.url, "a", options]);
    assert.equal(await paused.line(), "ready");
    assert.match((await paused.line()) ?? "", /^held/);
    paused.process.kill("SIGSTOP");
    const lease = await other.acquire("a", { waitMs: 20_000 });
    paused.process.kill("SIGCONT");
    paused.say("state");
    assert.equal(await paused.line(), "state false");
    paused.say("release");
    assert.equal(await paused.line(), "release gone");
    await lease.renew();
    assert.ok(lease.held);
  });
});
