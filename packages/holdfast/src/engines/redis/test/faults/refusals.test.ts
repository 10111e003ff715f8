// The server refuses operations: it is out of memory, busy, or a key holds something else.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "@holdfast/servers";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { soon } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const refused = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "none");
  assert.match(error.message, pattern);
  return true;
};

describeWithServer(
  "refusals",
  (it) => {
    for (const client of CLIENT_NAMES) {
      it(`a server out of memory refuses an acquire without effect, and accepts a release (${client})`, async (redis) => {
        const [ours, other] = [redis.locks({ client }), redis.locks()];
        const held = await ours.acquire("a");
        const reader = await ours.acquire("b", { mode: "shared" });
        await withoutMemory(redis, async () => {
          await assert.rejects(other.acquire("c"), refused(/out of memory/));
          await assert.rejects(other.acquire("a", { waitMs: 5_000 }), refused(/out of memory/));
          await assert.rejects(other.tryAcquire("c", { mode: "shared" }), refused(/out of memory/));
          // A plain renewal needs no memory.
          await held.renew();
          assert.equal(await held.release(), "released");
          assert.equal(await reader.release(), "released");
        });
        for (const name of ["a", "b", "c"]) {
          const { holders, waiters } = await ours.inspect(name);
          assert.deepEqual([name, holders, waiters], [name, [], []]);
        }
        assert.ok(await other.tryAcquire("c"));
      });

      it(`a long script of another client delays ours, and does not fail it for good (${client})`, async (redis) => {
        const ours = redis.locks({ client });
        const held = await ours.acquire("a", { ttlMs: 20_000 });
        const busy = await slowScript(redis, 2_000);
        await assert.rejects(ours.acquire("b"), refused(/busy with another script/));
        const retry = Array<number>(200).fill(100);
        const patient = await ours.acquire("c", { retry });
        await busy.end;
        assert.ok(held.held && patient.held);
        await held.renew();
        assert.equal(await held.release(), "released");
      });
    }

    it("a claim that was refused is not remembered as a waiter", async (redis) => {
      const locks = redis.locks();
      await redis.locks().acquire("a", { mode: "shared", limit: 2 });
      await assert.rejects(locks.acquire("a", { mode: "shared", limit: 3 }), /limit/);
      await withoutMemory(redis, () =>
        assert.rejects(locks.acquire("b"), refused(/out of memory/)),
      );
      // On close an engine releases the waiters that it still knows.
      const left = async () => /cmdstat_zrem:calls=\d+/.exec(await redis.admin.info("all"))?.[0];
      const before = await left();
      await locks.close();
      assert.equal(await left(), before);
    });

    it("an acquire that was given up gets a tombstone even if the server is out of memory", async (redis) => {
      // The answer to the acquire was lost, so its release asks for a tombstone, which needs
      // memory.
      const engine = redis.engine();
      const lost = claim("a");
      await engine.tryAcquire(lost, now());
      await withoutMemory(redis, async () => {
        const [answer] = await engine.release([{ ...lost, tombstoneMs: 60_000 }], now());
        assert.equal(answer?.kind, "released");
      });
      assert.equal((await engine.tryAcquire(lost, now())).kind, "gone");
      assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "granted");
    });

    it("a release promotes a waiter even if the server is out of memory", async (redis) => {
      const [ours, other] = [redis.locks(), redis.locks()];
      const held = await other.acquire("a");
      const waiting = ours.acquire("a", { ttlMs: 30_000 });
      await redis.untilWaiters(other, "a", 1);
      await withoutMemory(redis, async () => {
        assert.equal(await held.release(), "released");
        await waiting;
      });
    });

    it("a key that holds something else refuses its own resource, and no other in the same call", async (redis) => {
      const locks = redis.locks();
      await redis.admin.rpush("holdfast:list", "1");
      await redis.admin.sadd("{holdfast:queue}:queue", "1");
      const names = ["good", "list", "queue", "fine"];
      const outcomes = await Promise.allSettled(names.map((name) => locks.acquire(name)));
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["fulfilled", "rejected", "rejected", "fulfilled"],
      );
      for (const outcome of outcomes) {
        if (outcome.status === "rejected") refused(/not a lock/)(outcome.reason);
        else assert.equal(await outcome.value.release(), "released");
      }
      assert.equal(await redis.admin.llen("holdfast:list"), 1);
    });

    it("renewals of a resource whose key was broken do not delay the others", async (redis) => {
      const locks = redis.locks();
      const names = Array.from({ length: 50 }, (_, i) => `r${i}`);
      const leases = await Promise.all(names.map((name) => locks.acquire(name, { ttlMs: 4_000 })));
      await redis.admin.del("holdfast:r7");
      await redis.admin.rpush("holdfast:r7", "1");
      await sleep(6_000);
      const lost = leases.filter((lease) => !lease.held).map((lease) => lease.resource);
      assert.deepEqual(lost, ["r7"]);
    });

    it("list skips keys that are no locks", async (redis) => {
      const locks = redis.locks({ prefix: "" });
      await redis.admin.rpush("a list", "1");
      await redis.admin.hset("a hash", "cluster", "1");
      await redis.admin.zadd("{a set}:queue", 1, "member");
      await locks.acquire("a lock");
      const found = [];
      for await (const view of locks.list()) found.push(view.resource);
      assert.deepEqual(found, ["a lock"]);
    });

    for (const client of CLIENT_NAMES) {
      it(`a process whose server was never reached ends after close (${client})`, async (redis) => {
        await soon(2_000, async () => {
          const child = redis.child("unreachable", [String(await freePort()), client]);
          const exited = once(child.process, "exit");
          const [told, closedMs] = ((await child.line()) ?? "").split(" ");
          assert.equal(told, "ENGINE");
          // ioredis itself waits 2 s before it ends a connection.
          const ended = await Promise.race([exited, sleep(20_000, null, { ref: false })]);
          assert.ok(ended !== null, "something keeps it alive");
          return Number(closedMs);
        });
      });
    }

    it("a server that goes away while a client waits is reported as a failure, never as busy", async (redis) => {
      const relay = await redis.relay();
      for (const client of CLIENT_NAMES satisfies readonly ClientName[]) {
        const locks = redis.locks({ client, port: relay.port });
        await locks.inspect("warm up");
        relay.hang();
        await assert.rejects(
          locks.acquire("a", { waitMs: 20_000, callTimeoutMs: 200 }),
          (error) => {
            assert.ok(error instanceof EngineError);
            assert.equal(error.effect, "unknown");
            return true;
          },
        );
        relay.mend();
      }
    });
  },
  { args: ["--busy-reply-threshold", "20"] },
);

async function withoutMemory(redis: RedisTestServer, work: () => Promise<void>): Promise<void> {
  await redis.admin.config("SET", "maxmemory-policy", "noeviction");
  await redis.admin.config("SET", "maxmemory", "1mb");
  try {
    await work();
  } finally {
    await redis.admin.config("SET", "maxmemory", "0");
  }
}

/**
 * Keeps the server busy. Resolves when it answers BUSY; gives a function that waits for the end.
 */
async function slowScript(redis: RedisTestServer, ms: number): Promise<{ end: Promise<unknown> }> {
  const script = `
    local function ms() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
    local from = ms()
    while ms() - from < tonumber(ARGV[1]) do end`;
  const end = redis.ioRedis().eval(script, 0, ms);
  await until("the server is busy", () =>
    redis.admin.ping().then(
      () => false,
      () => true,
    ),
  );
  return { end };
}
