// The server loses data: keys deleted by hand, FLUSHALL, a restart without persistence.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { LeaseLostError } from "../../../../errors.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { CLIENT_NAMES, describeWithServer } from "../support/test-server.fixture.js";

const KEY = "holdfast:a";

describeWithServer("loss", (it) => {
  it("a lease whose key was deleted by hand is lost at the next renewal", async (redis) => {
    const locks = redis.locks();
    const lease = await locks.acquire("a", { ttlMs: 3_000 });
    await redis.admin.del(KEY);
    assert.equal(await lossOf(lease), "expired");
    assert.equal(await lease.release(), "gone");
  });

  it("a lease whose key another program has taken is lost, and its release leaves that key alone", async (redis) => {
    const locks = redis.locks();
    const lease = await locks.acquire("a", { ttlMs: 3_000 });
    await redis.admin.set(KEY, "mine", "PX", 5_000);
    assert.equal(await lossOf(lease), "replaced");
    assert.equal(await lease.release(), "gone");
    assert.equal(await redis.admin.get(KEY), "mine");
  });

  it("a lock that was evicted is granted again, and its holder learns of the loss", async (redis) => {
    // docs/engines/redis.md warns of this. With noeviction it cannot happen.
    const [ours, other] = [redis.locks(), redis.locks()];
    const lease = await ours.acquire("a", { ttlMs: 3_000 });
    await redis.admin.config("SET", "maxmemory-policy", "volatile-lru");
    await redis.admin.config("SET", "maxmemory", "1mb");
    await other.tryAcquire("b").catch(() => null);
    await redis.admin.config("SET", "maxmemory", "0");
    assert.equal(await redis.admin.exists(KEY), 0, "nothing was evicted");
    const next = await other.acquire("a", { waitMs: 0 });
    assert.equal(await lossOf(lease), "replaced");
    assertRising([lease.token, next.token]);
  });

  it("readers whose marker was deleted by hand stay lost when another reader comes", async (redis) => {
    const [ours, other] = [redis.locks(), redis.locks()];
    const options = { mode: "shared", limit: 1, renew: false } as const;
    const reader = await ours.acquire("a", options);
    await redis.admin.del(KEY);
    const writer = await other.acquire("a", { waitMs: 0 });
    await writer.release();
    const next = await other.acquire("a", { ...options, waitMs: 0 });
    assert.equal(await ours.check(reader.sequencer), false, "the old grant is valid again");
    await assert.rejects(reader.renew(), LeaseLostError);
    assert.ok(next.held);
  });

  for (const client of CLIENT_NAMES) {
    it(`a waiter gets its turn when the holder's key is deleted by hand (${client})`, async (redis) => {
      const [ours, other] = [redis.locks({ client }), redis.locks()];
      await soon(1_800, async (attempt) => {
        const name = `a${attempt}`;
        const held = await other.acquire(name);
        const waiting = ours.acquire(name);
        await redis.untilWaiters(other, name, 1);
        const tookMs = await timed(async () => {
          await redis.admin.del(`holdfast:${name}`);
          await waiting;
        });
        assert.ok((await waiting).token > held.token);
        return tookMs;
      });
    });

    it(`a holder and 5 waiters survive FLUSHALL (${client})`, async (redis) => {
      const [ours, other] = [redis.locks({ client }), redis.locks()];
      const held = await other.acquire("a", { ttlMs: 900 });
      const tokens: bigint[] = [held.token];
      const waits = Array.from({ length: 5 }, async () => {
        const lease = await ours.acquire("a", { fair: "strict" });
        tokens.push(lease.token);
        await lease.release();
      });
      await redis.untilWaiters(other, "a", 5);
      await redis.admin.flushall();
      await Promise.all([...waits, lossOf(held)]);
      assertRising(tokens);
    });

    it(`a holder and its waiter survive a restart without persistence (${client})`, async (redis) => {
      const [ours, other] = [redis.locks({ client }), redis.locks({ client })];
      await soon(3_000, async (attempt) => {
        const name = `a${attempt}`;
        const held = await other.acquire(name, { ttlMs: 5_000 });
        const waiting = ours.acquire(name, { ttlMs: 10_000 });
        await redis.untilWaiters(other, name, 1);
        const tookMs = await timed(async () => {
          await redis.server.restart();
          await Promise.all([waiting, lossOf(held)]);
        });
        // On a busy machine the lease may expire before the server answers again.
        if (tookMs < 3_000) assert.match(await lossOf(held), /expired|replaced/);
        assertRising([held.token, (await waiting).token]);
        return tookMs;
      });
      // Pushes arrive again, too.
      await sleep(300);
      await soon(500, async (attempt) => {
        const name = `pushed${attempt}`;
        const lease = await ours.acquire(name);
        const next = other.acquire(name);
        await redis.untilWaiters(ours, name, 1);
        return timed(async () => {
          await lease.release();
          await next;
        });
      });
    });

    it(`all verbs go on after SCRIPT FLUSH (${client})`, async (redis) => {
      const [ours, other] = [redis.locks({ client }), redis.locks({ client })];
      const flush = () => redis.admin.script("FLUSH", "SYNC");
      await flush();
      const lease = await ours.acquire("a");
      await flush();
      await lease.renew();
      await flush();
      const waiting = other.acquire("a");
      await redis.untilWaiters(ours, "a", 1);
      await flush();
      assert.ok(await ours.check(lease.sequencer));
      await flush();
      assert.equal(await lease.release(), "released");
      await flush();
      const next = await waiting;
      assert.equal(await ours.revoke("a", { token: next.token }), "revoked");
      await flush();
      const views = [];
      for await (const view of ours.list()) views.push(view.resource);
      assert.deepEqual(views, ["a"]);
    });

    it(`a waiter whose connections are all killed keeps its place (${client})`, async (redis) => {
      const [ours, other] = [redis.locks({ client }), redis.locks()];
      const held = await other.acquire("a");
      const order: string[] = [];
      const first = ours.acquire("a").then((lease) => {
        order.push("first");
        return lease.release();
      });
      await redis.untilWaiters(other, "a", 1);
      const second = other.acquire("a").then((lease) => {
        order.push("second");
        return lease.release();
      });
      await redis.untilWaiters(other, "a", 2);
      await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      await redis.admin.call("CLIENT", "KILL", "TYPE", "pubsub");
      await sleep(200);
      await held.release();
      await Promise.all([first, second]);
      assert.deepEqual(order, ["first", "second"]);
    });
  }

  it("a waiter does not ask more often if the holder's key was made persistent by hand", async (redis) => {
    const [ours, other] = [redis.locks(), redis.locks()];
    const held = await other.acquire("a", { renew: false });
    const waiting = ours.acquire("a", { waitMs: 1_500 });
    waiting.catch(() => {});
    await redis.untilWaiters(other, "a", 1);
    await redis.admin.persist(KEY);
    await sleep(600);
    const before = await redis.calls("evalsha");
    await sleep(800);
    const made = (await redis.calls("evalsha")) - before;
    assert.ok(made < 20, `${made} calls in 800 ms`);
    await held.release();
    await redis.admin.del(KEY);
  });
});

function assertRising(tokens: readonly bigint[]): void {
  for (const [i, token] of tokens.entries()) {
    assert.ok(i === 0 || token > tokens[i - 1]!, `${token} came after ${tokens[i - 1]}`);
  }
}
