// Waiters whose process gets no pushes, while other waiters of the queue do.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { RULES } from "../support/rights.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const WAITERS = "{holdfast:a}:waiters";
const PASSED_MS = 3_100;
const CLAIM_WINDOW_MS = 3_000;
/** A little less than a heartbeat. */
const SHORT_MS = 900;

/** Locks of a process that gets no pushes. */
type Deaf = (redis: RedisTestServer, client: ClientName) => Promise<Locks>;

const DEAF: Record<string, Deaf> = {
  "has no right to channels": async (redis, client) => {
    const rules = RULES.filter((rule) => !rule.startsWith("&"));
    await redis.admin.call("ACL", "SETUSER", "deaf", "on", ">secret", ...rules);
    return redis.locks({ client, user: ["deaf", "secret"] });
  },
  "cannot subscribe again": async (redis, client) => {
    const pushRelay = await redis.relay();
    const locks = redis.locks({ client, pushPort: pushRelay.port });
    await (await locks.acquire("warm up")).release();
    pushRelay.cut();
    return locks;
  },
};

describeWithServer("a waiter that was passed over", (it) => {
  for (const client of CLIENT_NAMES) {
    for (const [why, open] of Object.entries(DEAF)) {
      it(`is granted among others that never pause: it ${why} (${client})`, async (redis) => {
        const ours = await open(redis, client);
        const [busy, end] = takeTurns([redis.locks(), redis.locks()]);
        await until("the others take turns", () => busy.turns > 20);
        const lease = await ours.acquire("a", { waitMs: 60_000 });
        assert.ok(lease.held);
        await lease.release();
        await end();
      });
    }
  }

  it("finds its grant by a heartbeat, if it is alive", async (redis) => {
    const { ours, other, held, deaf, next } = await setUp(redis);
    await agePassedOver(redis, deaf.grantId);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    const [holder] = (await other.inspect("a", now())).holders;
    assert.equal(holder?.label, "deaf");
    const [answer] = await ours.queue!.heartbeat([deaf], now());
    assert.ok(answer?.kind === "granted" && answer.token === holder.token);
    assert.equal(answer.ttlMs, deaf.ttlMs);
    await ours.release([{ ...deaf, tombstoneMs: 0 }], now());
    const [after] = await other.queue!.heartbeat([next], now());
    assert.ok(after?.kind === "granted" && after.token > answer.token);
  });

  it("leaves its grant to the next one, if it gives up", async (redis) => {
    const { ours, other, held, deaf, next } = await setUp(redis);
    await agePassedOver(redis, deaf.grantId);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal((await ours.queue!.withdraw(deaf, now())).kind, "granted");
    await ours.release([{ ...deaf, tombstoneMs: 0 }], now());
    const [after] = await other.queue!.heartbeat([next], now());
    assert.equal(after?.kind, "granted");
  });

  it("delays the others by one claim window, if it dies after its grant was made", async (redis) => {
    const { other, held, deaf, next } = await setUp(redis);
    await agePassedOver(redis, deaf.grantId);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    const left = await redis.admin.pttl("holdfast:a");
    assert.ok(left > 0 && left <= CLAIM_WINDOW_MS, `it is kept for ${left} ms`);
    await redis.admin.pexpire("holdfast:a", 1);
    const turn = async () => (await other.queue!.heartbeat([next], now()))[0]?.kind === "granted";
    await until("the next one has its turn", turn);
  });

  it("gets no grant, if it died before", async (redis) => {
    const { other, held, deaf, next } = await setUp(redis);
    await agePassedOver(redis, deaf.grantId, PASSED_MS);
    const pushed: string[] = [];
    other.queue!.onGrant(({ grantId }) => void pushed.push(grantId));
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await until("the next one is granted", () => pushed.includes(next.grantId));
  });

  it("gets no grant, if it listened again and then died", async (redis) => {
    const { ours, other, held, deaf, next, relay } = await setUp(redis);
    await agePassedOver(redis, deaf.grantId);
    relay.mend();
    await until("both listen", async () => (await listeners(redis)) === 2);
    assert.equal((await ours.queue!.heartbeat([deaf], now()))[0]?.kind, "queued");
    relay.cut();
    await until("only one of them hears", async () => (await listeners(redis)) === 1);
    const pushed: string[] = [];
    other.queue!.onGrant(({ grantId }) => void pushed.push(grantId));
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await until("the next one is granted", () => pushed.includes(next.grantId));
  });

  it("finds its grant also with a ttl shorter than a heartbeat", async (redis) => {
    const { ours, other, held, deaf } = await setUp(redis, SHORT_MS);
    await agePassedOver(redis, deaf.grantId);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await sleep(1_000);
    const [answer] = await ours.queue!.heartbeat([deaf], now());
    assert.ok(answer?.kind === "granted" && answer.ttlMs === SHORT_MS);
    assert.equal((await ours.renew([{ ...deaf, ttlMs: SHORT_MS }], now()))[0]?.kind, "renewed");
    const left = await redis.admin.pttl("holdfast:a");
    assert.ok(left <= SHORT_MS, `a renewal leaves it ${left} ms`);
  });
});

/** A holder, a waiter that gets no pushes, and one behind it that does. */
async function setUp(redis: RedisTestServer, ttlMs = 10_000) {
  const relay = await redis.relay();
  const ours = redis.engine({ pushPort: relay.port });
  const other = redis.engine();
  const [held, deaf, next] = [claim("a"), claim("a", { label: "deaf", ttlMs }), claim("a")];
  await other.tryAcquire(held, now());
  await ours.queue!.enqueue(deaf, now());
  await other.queue!.enqueue(next, now());
  relay.cut();
  await until("only one of them hears", async () => (await listeners(redis)) === 1);
  return { ours, other, held, deaf, next, relay };
}

async function listeners(redis: RedisTestServer): Promise<number> {
  return ((await redis.admin.pubsub("CHANNELS", "holdfast.push.*")) as string[]).length;
}

/**
 * Makes the waiter one that was first passed over long ago, with a last heartbeat this long ago.
 */
async function agePassedOver(redis: RedisTestServer, grantId: string, silentMs = 0): Promise<void> {
  const record = (await redis.admin.hget(WAITERS, grantId)) ?? "";
  const aged = record.replace(
    /:(\d{13}):0:/,
    (_, heard) => `:${Number(heard) - silentMs}:${Date.now() - PASSED_MS}:`,
  );
  assert.notEqual(aged, record, "the record holds when it was heard of and when passed over");
  await redis.admin.hset(WAITERS, grantId, aged);
}

/** Two loops in each process, so that somebody waits at every release. */
function takeTurns(everybody: readonly Locks[]) {
  const busy = { turns: 0 };
  let enough = false;
  const loop = async (locks: Locks) => {
    while (!enough) {
      const lease = await locks.acquire("a", { fair: "strict" });
      busy.turns++;
      await lease.release();
    }
  };
  const loops = Promise.all([...everybody, ...everybody].map(loop));
  loops.catch(() => {});
  const end = async () => {
    enough = true;
    await loops;
  };
  return [busy, end] as const;
}
