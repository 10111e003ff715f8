// Tokens rise however a grant ends, and an idle resource leaves no keys behind.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import type { Engine, Granted, Mode } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithServer, RedisTestServer } from "../support/test-server.fixture.js";

const IDLE_MS = 1_000;
const LARGEST = 2n ** 53n;

/** How a grant ends in one step of a history. */
const ENDS = ["release", "expiry", "revoke", "force", "delete", "waiter"] as const;
const step = fc.record({
  end: fc.constantFrom(...ENDS),
  mode: fc.constantFrom<Mode>("exclusive", "shared"),
  tokens: fc.constantFrom(1, 2, 1024),
});

describeWithServer("tokens", (it) => {
  it("tokens rise strictly and stay below 2^53 over release, expiry, revoke, force, deletion and hand-over", async (redis) => {
    const engine = redis.engine();
    let resource = 0;
    const history = fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 12 }),
      async (steps) => {
        const name = `r${resource++}`;
        let last = 0n;
        for (const { end, mode, tokens } of steps) {
          for (const granted of await grantAndEnd(redis, engine, name, end, mode, tokens)) {
            assert.ok(granted.token > last, `${granted.token} came after ${last}`);
            assert.ok(granted.tokens >= 1 && granted.tokens <= tokens);
            last = granted.token + BigInt(granted.tokens - 1);
            assert.ok(last < LARGEST);
          }
        }
      },
    );
    await fc.assert(history, { numRuns: 40, seed: 20261115 });
  });

  it("tokens rise across restarts without persistence", async (redis) => {
    const engine = redis.engine();
    let last = 0n;
    for (let i = 0; i < 3; i++) {
      const granted = await take(engine, "a", { tokens: 1024 });
      assert.ok(granted.token > last);
      last = granted.token + 1023n;
      await redis.server.restart();
      await until("the server answers", () => engine.inspect("a", now()).catch(() => null));
    }
  });

  it("tokens rise across restarts with persistence, and the grant is still there", async () => {
    await using durable = await RedisTestServer.start({ args: ["--appendonly", "yes"] });
    const engine = durable.engine();
    const mine = claim("a", { ttlMs: 60_000 });
    const first = (await engine.tryAcquire(mine, now())) as Granted;
    await durable.server.restart({ signal: "SIGTERM" });
    await until("the server answers", () => engine.inspect("a", now()).catch(() => null));
    assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "busy");
    const [released] = await engine.release([{ ...mine, tombstoneMs: 0 }], now());
    assert.equal(released?.kind, "released");
    const second = await take(engine, "a");
    assert.ok(second.token > first.token);
  });

  it("a fence ahead of the clock survives a release that promotes nobody", async (redis) => {
    const pushRelay = await redis.relay();
    const open = () => redis.engine({ pushPort: pushRelay.port, idleMs: IDLE_MS });
    // Two engines: the answer to a release would promote a waiter of the same engine.
    const [engine, other] = [open(), open()];
    const [holder, waiter] = [claim("a"), claim("a")];
    await engine.queue!.enqueue(holder, now());
    await other.queue!.enqueue(waiter, now());
    const ahead = String((Date.now() + 60_000) * 1_000);
    await redis.admin.set("{holdfast:a}:fence", ahead, "PX", 60_000 + IDLE_MS);
    pushRelay.cut();
    await until("nobody listens", async () => {
      const channels = (await redis.admin.pubsub("CHANNELS", "*push*")) as string[];
      return channels.length === 0;
    });
    await engine.release([{ ...holder, tombstoneMs: 0 }], now());
    assert.equal(await redis.admin.get("{holdfast:a}:fence"), ahead);
    const leftMs = await redis.admin.pttl("{holdfast:a}:fence");
    assert.ok(leftMs > 50_000, `it is kept for ${leftMs} ms`);
  });

  it("tokens rise when the server's clock is behind the last one", async (redis) => {
    // The fence is as a clock left it that was set back afterwards.
    const engine = redis.engine();
    const ahead = BigInt(Date.now() + 60_000) * 1_000n;
    await redis.admin.set("{holdfast:a}:fence", String(ahead), "PX", 60_000);
    const granted = await take(engine, "a", { tokens: 1024 });
    assert.equal(granted.token, ahead + 1n);
    assert.ok((await take(engine, "a")).token > ahead + 1024n);
  });

  it("tokens rise when so many were reserved that they are ahead of the clock as the fence expires", async (redis) => {
    const engine = redis.engine({ idleMs: IDLE_MS });
    let last = 0n;
    const aheadMs = () => Number(last / 1_000n) - Date.now();
    // Thirty rounds are enough on a machine that does nothing else.
    for (let i = 0; i < 300 && aheadMs() < 1_000; i++) {
      // 100 grants of 1024 tokens each round trip: more tokens than microseconds.
      const all = await Promise.all(
        Array.from({ length: 100 }, async () => {
          const mine = claim("a", { tokens: 1024 });
          const answer = engine.tryAcquire(mine, now());
          const released = engine.release([{ ...mine, tombstoneMs: 0 }], now());
          await released;
          return answer;
        }),
      );
      for (const answer of all) {
        if (answer.kind === "granted" && answer.token + 1023n > last) last = answer.token + 1023n;
      }
    }
    assert.ok(aheadMs() > 500, `only ${aheadMs()} ms ahead of the clock: this shows nothing`);
    await sleep(IDLE_MS + 200);
    const next = await take(engine, "a");
    assert.ok(next.token > last, `${next.token} came after ${last}`);
  });

  it("an idle resource leaves nothing behind after idleMs", async (redis) => {
    const locks = redis.locks({ idleMs: IDLE_MS });
    const other = redis.locks({ client: "node-redis", idleMs: IDLE_MS });
    const held = await locks.acquire("a");
    const waiting = other.acquire("a");
    await redis.untilWaiters(locks, "a", 1);
    await held.release();
    await (await waiting).release();
    const readers = [
      await locks.acquire("b", { mode: "shared" }),
      await other.acquire("b", { mode: "shared" }),
    ];
    for (const reader of readers) await reader.release();
    await locks.acquire("expired", { ttlMs: 100, renew: false });
    await locks.acquire("delayed", { ttlMs: 100, lockDelayMs: 100, renew: false });
    await locks.acquire("shared", { ttlMs: 100, mode: "shared", renew: false });
    const aborted = new AbortController();
    const blocker = await other.acquire("c");
    const left = locks.acquire("c", { signal: aborted.signal });
    await redis.untilWaiters(other, "c", 1);
    // A waiter that gives up before its enqueue is answered leaves a tombstone for two minutes. A
    // call on the same connection is answered after the enqueue.
    await locks.inspect("c");
    aborted.abort();
    await assert.rejects(left);
    await blocker.release();
    assert.ok((await redis.admin.dbsize()) > 0);
    const none = async () => (await redis.admin.dbsize()) === 0;
    const tookMs = await until("nothing is left", none).catch(async () =>
      assert.fail(`these are left: ${await redis.admin.keys("*")}`),
    );
    assert.ok(tookMs < 10 * IDLE_MS, `it took ${tookMs} ms`);
  });

  it("10,000 resources used once are all forgotten after idleMs", async (redis) => {
    const engine = redis.engine({ idleMs: IDLE_MS });
    for (let i = 0; i < 10_000; i += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, j) => take(engine, `r${i + j}`)));
    }
    await sleep(IDLE_MS);
    await until("nothing is left", async () => (await redis.admin.dbsize()) === 0);
  });
});

/** Acquires and releases. */
async function take(engine: Engine, resource: string, more = {}): Promise<Granted> {
  const mine = claim(resource, more);
  const answer = await engine.tryAcquire(mine, now());
  assert.equal(answer.kind, "granted");
  await engine.release([{ ...mine, tombstoneMs: 0 }], now());
  return answer as Granted;
}

/** Makes one grant and ends it. Gives all grants that were made, in order. */
async function grantAndEnd(
  redis: RedisTestServer,
  engine: Engine,
  resource: string,
  end: (typeof ENDS)[number],
  mode: Mode,
  tokens: number,
): Promise<Granted[]> {
  const mine = claim(resource, { mode, tokens, ttlMs: end === "expiry" ? 20 : 10_000 });
  const granted = (await engine.tryAcquire(mine, now())) as Granted;
  assert.equal(granted.kind, "granted");
  const release = () => engine.release([{ ...mine, tombstoneMs: 0 }], now());
  const revoke = (force: boolean) =>
    engine.revoke({ resource, token: granted.token, force }, now());
  if (end === "release") await release();
  else if (end === "expiry") await sleep(25);
  else if (end === "force") assert.equal(await revoke(true), "revoked");
  else if (end === "delete") await redis.admin.del(`holdfast:${resource}`);
  else if (end === "revoke") {
    assert.equal(await revoke(false), "revoked");
    await release();
  } else {
    const next = claim(resource, { tokens });
    const pushed = new Promise<Granted>((hear) => {
      const stop = engine.queue!.onGrant((_, grant) => {
        stop();
        hear(grant);
      });
    });
    assert.equal((await engine.queue!.enqueue(next, now())).kind, "queued");
    await release();
    const second = await pushed;
    await engine.release([{ ...next, tombstoneMs: 0 }], now());
    return [granted, second];
  }
  return [granted];
}
