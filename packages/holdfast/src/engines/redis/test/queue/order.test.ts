// Renewals that overtake each other, are repeated, pass a lease on, or leave its grant behind.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import type { Call, Claim, Engine, Granted, RenewRef } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { truth } from "../support/record.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 20_000;
const ORDERS = 5;

const REQUEST = fc.record({
  order: fc.nat(ORDERS - 1),
  ttlMs: fc.constantFrom(TTL_MS, 60_000, 40_000),
  index: fc.nat(2),
  leave: fc.oneof({ weight: 5, arbitrary: fc.constant(false) }, fc.constant(true)),
});

/** Each kind of grant has its own record format, and its own path through the script. */
const KINDS: Readonly<Record<string, Partial<Claim>>> = {
  exclusive: {},
  "exclusive with a lock-delay": { lockDelayMs: 30_000 },
  shared: { mode: "shared" },
  "shared with a limit": { mode: "shared", limit: 3 },
};

/** A renewal alone, and one of many that travel as one operation. */
const BATCHES: Readonly<Record<string, readonly string[]>> = { alone: [], together: ["b", "c"] };

async function setUp(redis: RedisTestServer, kind: string, batch: string) {
  const engine = redis.engine();
  const held = claim("a", { ttlMs: TTL_MS, tokens: 3, ...KINDS[kind] });
  const granted = await engine.tryAcquire(held, now());
  assert.ok(granted.kind === "granted");
  const others = BATCHES[batch]!.map((name) => claim(name, { ttlMs: TTL_MS }));
  for (const other of others) await engine.tryAcquire(other, now());
  const renew = async (more: Partial<RenewRef>, call: Call = now()) => {
    const refs = [held, ...others].map((ref) => ({ ...ref, ttlMs: TTL_MS, ...more }));
    const [answer] = await engine.renew(refs, call);
    return answer!;
  };
  const leftMs = async () => (await truth(redis.admin, "a"))[0]?.remainingMs ?? 0;
  return { engine, held, token: granted.token, renew, leftMs };
}

for (const kind of Object.keys(KINDS)) {
  for (const batch of Object.keys(BATCHES)) {
    describeWithServer(`renewals of a grant (${kind}, ${batch})`, (it) => {
      it("a renewal that arrives after a later one for the same ttl changes nothing", async (g) => {
        const { renew, leftMs } = await setUp(g, kind, batch);
        const early = now();
        assert.equal((await renew({ ttlMs: TTL_MS })).kind, "renewed");
        const late = await renew({ ttlMs: 2_000 }, early);
        assert.ok((await leftMs()) > TTL_MS / 2);
        assert.ok(late.kind === "renewed" && late.since === early.startedAt, late.kind);
        assert.ok(late.ttlMs > TTL_MS / 2 && late.ttlMs <= TTL_MS, `${late.ttlMs} ms are left`);
      });

      it("a renewal that arrives after a later one for another ttl changes nothing", async (g) => {
        const { renew, leftMs } = await setUp(g, kind, batch);
        const early = now();
        await renew({ ttlMs: 60_000 });
        await renew({ ttlMs: 2_000 }, early);
        assert.ok((await leftMs()) > 30_000);
        await renew({ ttlMs: 5_000 });
        const late = await renew({ ttlMs: 60_000 }, early);
        assert.ok((await leftMs()) <= 5_000);
        assert.ok(late.kind === "renewed" && late.ttlMs <= 5_000);
      });

      it("the token in use is the largest that a renewal named", async (g) => {
        const { engine, token, renew } = await setUp(g, kind, batch);
        const inUse = async () => (await engine.inspect("a", now())).holders[0]?.token;
        const early = now();
        await renew({ index: 2 });
        assert.equal(await inUse(), token + 2n);
        for (const call of [early, now()]) {
          assert.equal((await renew({ index: 1 }, call)).kind, "renewed");
          assert.equal(await inUse(), token + 2n);
        }
        const revoke = (which: bigint) =>
          engine.revoke({ resource: "a", token: which, force: false }, now());
        assert.equal(await revoke(token + 1n), "gone");
        assert.equal(await revoke(token + 2n), "revoked");
        for (const index of [1, 2]) {
          assert.deepEqual(await renew({ index }), { kind: "gone", why: "revoked" });
        }
        const sequence = { resource: "a", mode: KINDS[kind]!.mode ?? "exclusive", token } as const;
        assert.equal(await engine.check(sequence, now()), false);
        assert.equal((await renew({ index: 3 })).kind, "renewed");
        assert.equal(await engine.check(sequence, now()), true);
      });

      it("no renewal follows one that leaves its grant behind", async (g) => {
        const { engine, held, token, renew, leftMs } = await setUp(g, kind, batch);
        const [early, leaving] = [now(), now()];
        assert.equal((await renew({ ttlMs: 5_000, leave: true }, leaving)).kind, "renewed");
        for (const call of [early, now()]) {
          assert.equal((await renew({ ttlMs: 60_000 }, call)).kind, "gone");
        }
        const { queue } = engine;
        assert.equal((await engine.tryAcquire(held, now())).kind, "gone");
        assert.equal((await queue!.enqueue(held, now())).kind, "gone");
        assert.deepEqual(await queue!.heartbeat([held], now()), [{ kind: "unknown" }]);
        assert.equal((await queue!.withdraw(held, now())).kind, "withdrawn");
        for (const tombstoneMs of [0, 1_000]) {
          const [released] = await engine.release([{ ...held, tombstoneMs }], now());
          assert.equal(released!.kind, "gone");
        }
        assert.ok((await leftMs()) > 2_000 && (await leftMs()) <= 5_000);
        assert.equal((await renew({ ttlMs: 8_000, leave: true })).kind, "renewed");
        assert.ok((await leftMs()) > 5_000);
        // A revoked grant is still left behind: no renewal brings it back.
        assert.equal(await engine.revoke({ resource: "a", token, force: false }, now()), "revoked");
        assert.equal((await renew({ ttlMs: 60_000, index: 1 })).kind, "gone");
        assert.equal(await engine.revoke({ resource: "a", token, force: true }, now()), "revoked");
        assert.equal(await leftMs(), 0);
      });
    });
  }
}

describeWithServer("a grant that was left behind", (it) => {
  it("ends on time, however often the same request arrives", async (redis) => {
    const { renew, leftMs } = await setUp(redis, "exclusive", "alone");
    const leaving = now();
    await renew({ ttlMs: 2_000, leave: true }, leaving);
    await sleep(300);
    const copy = await renew({ ttlMs: 2_000, leave: true }, leaving);
    assert.ok((await leftMs()) <= 1_700);
    assert.ok(copy.kind === "renewed" && copy.ttlMs <= 1_700);
  });

  it("keeps waiters out until it ends, and not longer", async (redis) => {
    const { engine, held } = await setUp(redis, "exclusive", "alone");
    const waiting = redis.locks().acquire("a");
    await until("it waits", async () => (await engine.inspect("a", now())).waiters.length === 1);
    const started = performance.now();
    await engine.renew([{ ...held, ttlMs: 700, leave: true }], now());
    await engine.close();
    const lease = await waiting;
    const tookMs = performance.now() - started;
    assert.ok(tookMs > 650 && tookMs < 2_500, `after ${tookMs.toFixed(0)} ms`);
    await lease.release();
  });
});

describeWithServer("a server that is out of memory", (it) => {
  it("applies plain renewals in order, and refuses to leave a grant behind", async (redis) => {
    for (const batch of Object.keys(BATCHES)) {
      await redis.admin.flushdb();
      const { renew, leftMs } = await setUp(redis, "exclusive", batch);
      const early = now();
      await redis.admin.config("SET", "maxmemory", "1");
      assert.equal((await renew({ ttlMs: 30_000 })).kind, "renewed");
      const left = await renew({ ttlMs: 3_000, leave: true });
      assert.ok(left.kind === "failed" && left.effect === "none", left.kind);
      await redis.admin.config("SET", "maxmemory", "0");
      assert.equal((await renew({ ttlMs: 2_000 }, early)).kind, "renewed");
      assert.ok((await leftMs()) > TTL_MS);
    }
  });
});

describeWithServer("renewals in any order", (it) => {
  for (const kind of Object.keys(KINDS)) {
    it(`leave the state of the latest one, however often each arrives (${kind})`, async (g) => {
      await fc.assert(
        fc.asyncProperty(fc.array(REQUEST, { minLength: 3, maxLength: 12 }), async (requests) => {
          await g.admin.flushdb();
          const { token, renew, leftMs, engine } = await setUp(g, kind, "alone");
          const calls = Array.from({ length: ORDERS }, () => now());
          let latest = -1;
          let [ttlMs, index, absent] = [TTL_MS, 0, false];
          for (const request of requests) {
            const { kind: told } = await renew(request, calls[request.order]!);
            assert.equal(told, absent && !request.leave ? "gone" : "renewed");
            if (told === "gone" || request.order < latest) continue;
            if (request.order === latest && absent) continue;
            latest = request.order;
            index = Math.max(index, request.index);
            [ttlMs, absent] = [request.ttlMs, request.leave];
          }
          const left = await leftMs();
          assert.ok(left <= ttlMs && left > ttlMs - 5_000, `${left} ms of ${ttlMs} are left`);
          const [holder] = (await engine.inspect("a", now())).holders;
          assert.equal(holder?.token, token + BigInt(index));
        }),
        { numRuns: 40 },
      );
    });
  }
});

describeWithServer("a repeated enqueue", (it) => {
  it("counts as the last heartbeat: the grant is valid from when it was sent", async (redis) => {
    const [ours, other] = [redis.engine(), redis.engine()];
    const pushed: Granted[] = [];
    ours.queue!.onGrant((_, granted) => pushed.push(granted));
    const held = claim("a");
    await other.tryAcquire(held, now());
    const waiter = claim("a");
    const longAgo = { ...now(), startedAt: performance.now() - 60_000 };
    assert.equal((await ours.queue!.enqueue(waiter, longAgo)).kind, "queued");
    const again = now();
    assert.equal((await ours.queue!.enqueue(waiter, again)).kind, "queued");
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await until("it is pushed", () => pushed.length > 0);
    assert.equal(pushed[0]!.since, again.startedAt);
  });

  it("does not date a grant if it has not arrived", async (redis) => {
    const relay = await redis.relay();
    const engine = redis.engine({ port: relay.port, pushPort: redis.server.port });
    const other = redis.engine();
    const pushed: Granted[] = [];
    engine.queue!.onGrant((_, granted) => pushed.push(granted));
    const held = claim("a");
    await other.tryAcquire(held, now());
    const waiter = claim("a");
    const first = now();
    await engine.queue!.enqueue(waiter, first);
    relay.hold();
    const asked = engine.queue!.enqueue(waiter, now());
    await sleep(50);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await until("it is pushed", () => pushed.length > 0);
    assert.equal(pushed[0]!.since, first.startedAt);
    relay.deliver();
    const granted = await asked;
    assert.ok(granted.kind === "granted" && granted.token === pushed[0]!.token);
  });

  it("keeps its place if its record was deleted by hand", async (redis) => {
    const [ours, other] = [redis.engine(), redis.engine()];
    const held = claim("a");
    await other.tryAcquire(held, now());
    const waiter = claim("a");
    await ours.queue!.enqueue(waiter, now());
    await redis.admin.del("{holdfast:a}:waiters");
    assert.equal((await ours.queue!.enqueue(waiter, now())).kind, "queued");
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    assert.equal((await heartbeat(ours, waiter)).kind, "granted");
  });
});

async function heartbeat(engine: Engine, waiter: Claim) {
  return (await engine.queue!.heartbeat([waiter], now()))[0]!;
}
