// What one operation costs the server among few and among many, by the time that the server counts
// for scripts. The fastest of several rounds counts, because a busy machine only adds time.
import assert from "node:assert/strict";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const [FEW, MANY] = [50, 2_000];
const ROUNDS = 15;
// The logarithm of 2,000 is twice that of 50, and only a part of the work grows with it. An
// operation that reads everybody becomes forty times as slow.
const MOST_GROWTH = 3;
// A script that reads all 2,000 for each of 512 operations takes seconds.
const LONGEST_SCRIPT_MS = 800;

/**
 * What one round measures. Each call of the engine is one script; the crowd already holds or waits.
 */
type Act = (engine: Engine, crowd: readonly Claim[], more: Partial<Claim>) => Promise<unknown>;

const HOLDING: Record<string, Act> = {
  "acquire and release": async (engine, _, terms) => {
    const one = claim("a", terms);
    assert.equal((await engine.tryAcquire(one, now())).kind, "granted");
    await engine.release([{ ...one, tombstoneMs: 0 }], now());
  },
  renewal: async (engine, [first]) => {
    const [answer] = await engine.renew([{ ...first!, ttlMs: 60_000 }], now());
    assert.equal(answer?.kind, "renewed");
  },
  "a refused writer": async (engine) => {
    assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "busy");
  },
  check: async (engine) => {
    const sequence = { resource: "a", mode: "shared", token: 1n } as const;
    assert.equal(await engine.check(sequence, now()), false);
  },
};

const WAITING: Record<string, Act> = {
  "enqueue and withdrawal": async (engine, _, terms) => {
    const one = claim("a", terms);
    assert.equal((await engine.queue!.enqueue(one, now())).kind, "queued");
    assert.equal((await engine.queue!.withdraw(one, now())).kind, "withdrawn");
  },
  heartbeat: async (engine, crowd) => {
    const [answer] = await engine.queue!.heartbeat([crowd[crowd.length >> 1]!], now());
    assert.equal(answer?.kind, "queued");
  },
  "a claim that does not wait": async (engine, _, terms) => {
    assert.equal((await engine.tryAcquire(claim("a", terms), now())).kind, "busy");
  },
  "a turn that is over": async (engine, crowd, terms) => {
    // The holder of the only permit releases it, and joins the queue again.
    const holder = crowd[turn++ % crowd.length]!;
    const [answer] = await engine.release([{ ...holder, tombstoneMs: 0 }], now());
    assert.equal(answer?.kind, "released");
    assert.equal((await engine.queue!.enqueue({ ...holder, ...terms }, now())).kind, "queued");
  },
};

let turn = 0;

describeWithServer("cost", (it) => {
  for (const [name, act] of Object.entries(HOLDING)) {
    it(`${name} costs the same among ${MANY} readers as among ${FEW}`, async (redis) => {
      const terms = { mode: "shared", ttlMs: 60_000 } as const;
      await compare(redis, terms, (engine, one) => engine.tryAcquire(one, now()), act);
    });
  }

  for (const [name, act] of Object.entries(WAITING)) {
    it(`${name} costs the same among ${MANY} at a semaphore as among ${FEW}`, async (redis) => {
      const terms = { mode: "shared", limit: 1, ttlMs: 60_000 } as const;
      turn = 0;
      await compare(redis, terms, (engine, one) => engine.queue!.enqueue(one, now()), act);
    });
  }

  it("renewals and releases of 2,000 readers at once do not block the server for long", async (redis) => {
    const { engine, crowd } = await makeCrowd(redis, MANY, { mode: "shared" }, (one, engine) =>
      engine.tryAcquire(one, now()),
    );
    await redis.admin.config("RESETSTAT");
    await redis.admin.slowlog("RESET");
    const renewed = await engine.renew(crowd, now());
    assert.ok(renewed.every(({ kind }) => kind === "renewed"));
    const released = await engine.release(
      crowd.map((one) => ({ ...one, tombstoneMs: 0 })),
      now(),
    );
    assert.ok(released.every(({ kind }) => kind === "released"));
    await assertShort(redis);
  });

  it("2,000 queued readers are promoted in several calls when their writer releases", async (redis) => {
    const other = redis.engine();
    const writer = claim("a");
    await other.tryAcquire(writer, now());
    const pushed = new Set<string>();
    const { engine, crowd } = await makeCrowd(redis, MANY, { mode: "shared" }, (one, engine) =>
      engine.queue!.enqueue(one, now()),
    );
    engine.queue!.onGrant(({ grantId }) => void pushed.add(grantId));
    await redis.admin.slowlog("RESET");
    await other.release([{ ...writer, tombstoneMs: 0 }], now());
    const deadline = Date.now() + 40_000;
    while (pushed.size < MANY && Date.now() < deadline)
      await new Promise((go) => setTimeout(go, 20));
    assert.equal(pushed.size, MANY, "not all of them were granted");
    assert.ok(crowd.every(({ grantId }) => pushed.has(grantId)));
    await assertShort(redis);
  });
});

/** Makes so many holders or waiters of one engine. */
async function makeCrowd(
  redis: RedisTestServer,
  count: number,
  terms: Partial<Claim>,
  enter: (one: Claim, engine: Engine) => Promise<{ kind: string }>,
) {
  await redis.admin.config("SET", "slowlog-log-slower-than", "1000");
  const engine = redis.engine();
  const crowd = Array.from({ length: count }, () => claim("a", terms));
  // In order, and a few at a time, so that the first one at a semaphore gets its permit.
  for (let i = 0; i < count; i += 100) {
    await Promise.all(crowd.slice(i, i + 100).map((one) => enter(one, engine)));
  }
  return { engine, crowd };
}

async function compare(
  redis: RedisTestServer,
  terms: Partial<Claim>,
  enter: (engine: Engine, one: Claim) => Promise<{ kind: string }>,
  act: Act,
): Promise<void> {
  const spent: number[] = [];
  for (const count of [FEW, MANY]) {
    await redis.admin.flushall();
    const { engine, crowd } = await makeCrowd(redis, count, terms, (one, at) => enter(at, one));
    let least = Infinity;
    for (let round = 0; round < ROUNDS; round++) {
      await redis.admin.config("RESETSTAT");
      await act(engine, crowd, terms);
      least = Math.min(least, await scriptMicros(redis));
    }
    spent.push(least);
  }
  const [few, many] = spent as [number, number];
  assert.ok(many <= few * MOST_GROWTH, `${few} µs among ${FEW}, ${many} µs among ${MANY}`);
}

async function scriptMicros(redis: RedisTestServer): Promise<number> {
  const stats = await redis.admin.info("commandstats");
  return Number(/cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(stats)?.[1]);
}

async function assertShort(redis: RedisTestServer): Promise<void> {
  const slow = (await redis.admin.slowlog("GET", 1_000)) as [number, number, number][];
  const longest = Math.max(0, ...slow.map(([, , micros]) => micros)) / 1_000;
  assert.ok(longest < LONGEST_SCRIPT_MS, `the longest script took ${longest} ms`);
}
