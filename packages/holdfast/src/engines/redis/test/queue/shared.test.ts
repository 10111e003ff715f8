// The script counts shared grants and waiters, and knows their limit, without reading all of them.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { age, silence, truth } from "../support/record.fixture.js";
import { describeWithServer } from "../support/test-server.fixture.js";

const TTL_MS = 60_000;
const SHORT_MS = 10_000;

describeWithServer("shared grants and waiters", (it) => {
  it("many permits that end at one instant admit exactly as many", async (redis) => {
    const engine = redis.engine();
    const terms = { mode: "shared", limit: 41, ttlMs: TTL_MS } as const;
    const [last, ...ending] = permits(41, terms);
    await take(engine, [{ ...last!, ttlMs: TTL_MS * 10 }, ...ending]);
    assert.equal((await engine.tryAcquire(claim("a", terms), now())).kind, "busy");
    await age(redis.admin, "a", TTL_MS + 1);
    await take(engine, permits(40, terms));
    assert.equal((await engine.tryAcquire(claim("a", terms), now())).kind, "busy");
    assert.equal((await truth(redis.admin, "a")).length, 41);
    const [over] = await engine.renew([{ ...ending[0]!, ttlMs: TTL_MS }], now());
    assert.equal(over?.kind, "gone");
  });

  it("expired readers do not keep a writer out, although some records are still there", async (redis) => {
    const engine = redis.engine();
    const [last, ...ending] = permits(60, { mode: "shared", ttlMs: TTL_MS });
    await take(engine, [{ ...last!, ttlMs: TTL_MS * 10 }, ...ending]);
    await age(redis.admin, "a", TTL_MS + 1);
    assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "busy");
    await engine.release([{ ...last!, tombstoneMs: 0 }], now());
    await take(engine, [claim("a")]);
    assert.deepEqual((await redis.admin.keys("*")).sort(), ["holdfast:a", "{holdfast:a}:fence"]);
  });

  it("the holder key lives as long as the last reader, whichever was released", async (redis) => {
    const engine = redis.engine();
    const [short, long] = [
      claim("a", { mode: "shared", ttlMs: SHORT_MS }),
      claim("a", { mode: "shared", ttlMs: TTL_MS }),
    ];
    await take(engine, [short, long]);
    assert.ok((await redis.admin.pttl("holdfast:a")) > SHORT_MS);
    await engine.release([{ ...long, tombstoneMs: 0 }], now());
    assert.ok((await redis.admin.pttl("holdfast:a")) <= SHORT_MS);
    await engine.renew([{ ...short, ttlMs: TTL_MS }], now());
    assert.ok((await redis.admin.pttl("holdfast:a")) > SHORT_MS);
    await engine.release([{ ...short, tombstoneMs: 0 }], now());
    const left = await redis.admin.keys("*");
    assert.deepEqual(left, ["{holdfast:a}:fence"]);
  });

  it("a grant in its lock-delay does not bind claims to its limit", async (redis) => {
    const engine = redis.engine();
    const delayed = { mode: "shared", limit: 2, ttlMs: SHORT_MS, lockDelayMs: TTL_MS } as const;
    await take(engine, [claim("a", delayed)]);
    const other = { mode: "shared", limit: 3 } as const;
    await assert.rejects(engine.tryAcquire(claim("a", other), now()), /limit/);
    await age(redis.admin, "a", SHORT_MS + 1);
    await take(engine, permits(2, other));
    assert.equal((await engine.tryAcquire(claim("a", other), now())).kind, "busy");
    await assert.rejects(engine.tryAcquire(claim("a", { ...delayed }), now()), /limit/);
  });

  it("the limit of queued claims holds as long as one of them is alive", async (redis) => {
    const engine = redis.engine();
    await take(engine, [claim("a")]);
    const wait = (terms: Partial<Claim>) => {
      const one = claim("a", terms);
      return engine.queue!.enqueue(one, now()).then(() => one);
    };
    const two = { mode: "shared", limit: 2 } as const;
    const three = { mode: "shared", limit: 3 } as const;
    await wait({});
    const [first, second] = [await wait(two), await wait(two)];
    await engine.queue!.withdraw(first, now());
    await assert.rejects(wait(three), /limit/);
    await engine.queue!.withdraw(second, now());
    await wait(three);
    await assert.rejects(wait(two), /limit/);
    await assert.rejects(engine.tryAcquire(claim("a", two), now()), /limit/);
  });

  it("a waiter that counted as dead does not come back if others have another limit", async (redis) => {
    const engine = redis.engine();
    await take(engine, [claim("a")]);
    const [head, dead] = [claim("a"), claim("a", { mode: "shared", limit: 2 })];
    for (const one of [head, dead]) await engine.queue!.enqueue(one, now());
    await silence(redis.admin, "a", 11_000);
    // The head is alive, so nothing meets the dead waiter behind it.
    await engine.queue!.heartbeat([head], now());
    await engine.queue!.enqueue(claim("a", { mode: "shared", limit: 3 }), now());
    const [answer] = await engine.queue!.heartbeat([dead], now());
    assert.equal(answer?.kind, "unknown");
  });

  it("a waiter that counted as dead comes back if others have the same limit", async (redis) => {
    const engine = redis.engine();
    await take(engine, [claim("a")]);
    const dead = claim("a", { mode: "shared", limit: 2 });
    await engine.queue!.enqueue(dead, now());
    await silence(redis.admin, "a", 11_000);
    const [answer] = await engine.queue!.heartbeat([dead], now());
    assert.equal(answer?.kind, "queued");
  });

  it("a queue that ends and begins again in one call has an expiry", async (redis) => {
    const engine = redis.engine();
    await take(engine, [claim("a")]);
    const [first, a, b] = permits(3, { mode: "shared" });
    await engine.queue!.enqueue(first!, now());
    await engine.queue!.withdraw(first!, now());
    const calls = [
      engine.queue!.enqueue(a!, now()),
      engine.queue!.withdraw(a!, now()),
      engine.queue!.enqueue(b!, now()),
    ];
    await Promise.all(calls);
    for (const kind of ["queue", "waiters"]) {
      assert.ok((await redis.admin.pttl(`{holdfast:a}:${kind}`)) > 0, `${kind} has no end`);
    }
  });

  it("check and revoke find a grant by each of its tokens", async (redis) => {
    const engine = redis.engine();
    const readers = permits(30, { mode: "shared", tokens: 5 });
    const grants = await take(engine, readers);
    const seen = async (token: bigint) =>
      engine.check({ resource: "a", mode: "shared", token }, now());
    for (const { token } of grants) {
      assert.deepEqual(await Promise.all([seen(token), seen(token + 4n)]), [true, true]);
    }
    assert.equal(await seen(grants[29]!.token + 5n), false);
    assert.equal(await seen(grants[0]!.token - 1n), false);
    await engine.release([{ ...readers[7]!, tombstoneMs: 0 }], now());
    assert.equal(await seen(grants[7]!.token), false);
    assert.equal(await redis.admin.zcard("{holdfast:a}:tokens"), 29);
    assert.equal(
      await engine.revoke({ resource: "a", token: grants[8]!.token, force: true }, now()),
      "revoked",
    );
    assert.equal((await engine.renew([{ ...readers[8]! }], now()))[0]?.kind, "gone");
    assert.equal((await engine.renew([{ ...readers[9]! }], now()))[0]?.kind, "renewed");
  });

  it("a claim does not overtake readers that its call could not promote", async (redis) => {
    const [engine, other] = [redis.engine(), redis.engine()];
    await take(other, [claim("a")]);
    const readers = permits(200, { mode: "shared" });
    await Promise.all(readers.map((one) => engine.queue!.enqueue(one, now())));
    await redis.admin.del("holdfast:a");
    const late = claim("a", { mode: "shared" });
    assert.equal((await other.tryAcquire(late, now())).kind, "busy");
  });

  it("heartbeats promote readers that a call could not promote", async (redis) => {
    const pushRelay = await redis.relay();
    const [engine, deaf] = [redis.engine(), redis.engine({ pushPort: pushRelay.port })];
    const writer = claim("a");
    await take(deaf, [writer]);
    const pushed = new Set<string>();
    engine.queue!.onGrant(({ grantId }) => void pushed.add(grantId));
    const readers = permits(200, { mode: "shared" });
    await Promise.all(readers.map((one) => engine.queue!.enqueue(one, now())));
    // The releasing process gets no messages, so it cannot continue with the rest.
    pushRelay.cut();
    await until("it does not listen any more", async () => {
      const channels = await redis.admin.pubsub("CHANNELS", "holdfast.push.*");
      return (channels as string[]).length === 1;
    });
    await deaf.release([{ ...writer, tombstoneMs: 0 }], now());
    await sleep(50);
    assert.ok(
      pushed.size > 0 && pushed.size < readers.length,
      `${pushed.size} were granted at once`,
    );
    const left = readers.filter(({ grantId }) => !pushed.has(grantId));
    const answers = await engine.queue!.heartbeat(left, now());
    for (const [i, { kind }] of answers.entries()) {
      if (kind === "granted") pushed.add(left[i]!.grantId);
    }
    await until("all of them are granted", () => pushed.size === readers.length);
    assert.equal((await engine.inspect("a", now())).holders.length, readers.length);
  });
});

function permits(count: number, terms: Partial<Claim>): Claim[] {
  return Array.from({ length: count }, () => claim("a", terms));
}

async function take(engine: Engine, claims: readonly Claim[]) {
  const answers = [];
  for (const one of claims) {
    const answer = await engine.tryAcquire(one, now());
    assert.ok(answer.kind === "granted", answer.kind);
    answers.push(answer);
  }
  return answers;
}
