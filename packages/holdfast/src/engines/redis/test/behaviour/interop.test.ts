// With an empty prefix the key of a resource is its plain name, so programs without Holdfast
// exclude it and are excluded by it: redis-py's Lock, and SET NX PX with compare-and-delete by
// hand.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ensure } from "@holdfast/servers";
import type { Locks } from "../../../../locks.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const TTL_MS = 10_000;
const COMPARE_AND_DELETE = `
  if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
  return 0`;

// Reads "acquire <port> <ttl> <key>" and "release <port> <key>"; answers 1 or 0.
const PROGRAM = `
import sys, redis
from redis.exceptions import LockError
locks = {}
for line in sys.stdin:
    verb, port, rest = line.rstrip("\\n").split(" ", 2)
    if verb == "acquire":
        ttl, _, key = rest.partition(" ")
        lock = redis.Redis(port=int(port)).lock(key, timeout=int(ttl) / 1000)
        done = lock.acquire(blocking=False)
        if done: locks[port, key] = lock
    else:
        try:
            locks[port, rest].release()
            done = True
        except (KeyError, LockError):
            done = False
    print(1 if done else 0, flush=True)
`;

/** Another program that locks the same key in its own way. */
interface Foreigner {
  /** Whether it got the lock, without waiting. */
  acquire(key: string, ttlMs: number): Promise<boolean>;
  /** Whether it still held the lock. */
  release(key: string): Promise<boolean>;
}

const FOREIGNERS: Record<string, (redis: RedisTestServer) => Foreigner> = {
  "redis-py's Lock": (redis) => pythonLock(redis.server.port),
  "SET NX PX by hand": byHand,
};

let python: ChildProcess;
let answers: AsyncIterator<string>;
before(() => {
  const program = ["-c", PROGRAM];
  const stdio = ["pipe", "pipe", "inherit"] as const;
  python = spawn(ensure("redis-py"), program, { stdio: [...stdio] });
  answers = createInterface({ input: python.stdout! })[Symbol.asyncIterator]();
});
after(() => python.kill());

describeWithServer("interop", (it) => {
  type TestBody = (locks: Locks, foreigner: Foreigner, redis: RedisTestServer) => Promise<void>;

  const itWith = (who: string, client: ClientName, what: string, body: TestBody) =>
    it(`${who} ${what} (${client})`, async (redis) => {
      await using locks = redis.locks({ client, prefix: "" });
      await body(locks, FOREIGNERS[who]!(redis), redis);
    });

  for (const who of Object.keys(FOREIGNERS)) {
    for (const client of CLIENT_NAMES) {
      itWith(who, client, "excludes us until it is released", async (locks, foreigner) => {
        assert.ok(await foreigner.acquire("a", TTL_MS));
        assert.equal(await locks.tryAcquire("a"), null);
        assert.equal(await locks.tryAcquire("a", { mode: "shared" }), null);
        assert.ok(await foreigner.release("a"));
        assert.ok(await locks.tryAcquire("a"));
      });

      itWith(who, client, "is excluded by us until we release", async (locks, foreigner) => {
        const lease = await locks.acquire("a");
        assert.equal(await foreigner.acquire("a", TTL_MS), false);
        assert.equal(await lease.release(), "released");
        assert.ok(await foreigner.acquire("a", TTL_MS));
        assert.ok(await foreigner.release("a"));
      });

      itWith(
        who,
        client,
        "is granted to us soon after its release",
        async (locks, foreigner, redis) => {
          // Behind a foreign holder a waiter asks every 75 ms; its usual heartbeat is 1 s.
          await soon(600, async () => {
            assert.ok(await foreigner.acquire("a", TTL_MS));
            const waiting = locks.acquire("a");
            await redis.untilWaiters(locks, "a", 1);
            await sleep(300);
            const tookMs = await timed(async () => {
              assert.ok(await foreigner.release("a"));
              await waiting;
            });
            await (await waiting).release();
            return tookMs;
          });
        },
      );
    }

    itWith(who, "ioredis", "is granted to us when it expires", async (locks, foreigner) => {
      await soon(1_300, async (attempt) => {
        const name = `a${attempt}`;
        const tookMs = await timed(async () => {
          assert.ok(await foreigner.acquire(name, 400));
          await locks.acquire(name);
        });
        assert.ok(tookMs > 395, `it took ${tookMs} ms`);
        assert.equal(await foreigner.release(name), false);
        assert.equal(await foreigner.acquire(name, TTL_MS), false);
        return tookMs;
      });
    });

    itWith(who, "ioredis", "gets the lock when our grant expires", async (locks, foreigner) => {
      const lease = await locks.acquire("a", { ttlMs: 2_000, renew: false });
      assert.equal(await foreigner.acquire("a", TTL_MS), false);
      await until("the foreigner gets in", () => foreigner.acquire("a", TTL_MS));
      assert.equal(lease.held, false);
      // We can neither release nor renew the foreigner's lock.
      assert.equal(await lease.release(), "gone");
      assert.equal(await foreigner.acquire("a", TTL_MS), false);
      assert.ok(await foreigner.release("a"));
    });

    itWith(
      who,
      "ioredis",
      "as a writer is excluded by each of our readers",
      async (locks, foreigner) => {
        const readers = [
          await locks.acquire("a", { mode: "shared" }),
          await locks.acquire("a", { mode: "shared" }),
        ];
        for (const reader of readers) {
          assert.equal(await foreigner.acquire("a", TTL_MS), false);
          assert.equal(await foreigner.release("a"), false);
          await reader.release();
        }
        assert.ok(await foreigner.acquire("a", TTL_MS));
        assert.equal(await locks.tryAcquire("a", { mode: "shared" }), null);
      },
    );

    itWith(
      who,
      "ioredis",
      "as a writer gets the lock when our last reader expires",
      async (locks, foreigner) => {
        await soon(1_400, async (attempt) => {
          const name = `a${attempt}`;
          const tookMs = await timed(async () => {
            await locks.acquire(name, { mode: "shared", ttlMs: 200, renew: false });
            await locks.acquire(name, { mode: "shared", ttlMs: 500, renew: false });
            await until("it gets in", () => foreigner.acquire(name, TTL_MS));
          });
          assert.ok(tookMs > 495, `it took ${tookMs} ms`);
          return tookMs;
        });
      },
    );

    itWith(
      who,
      "ioredis",
      "waits for our lock-delay after a loss, not after a release",
      async (locks, foreigner) => {
        const options = { ttlMs: 300, lockDelayMs: 400, renew: false };
        const released = await locks.acquire("a", options);
        await released.release();
        assert.ok(await foreigner.acquire("a", TTL_MS));
        assert.ok(await foreigner.release("a"));
        await soon(1_600, async (attempt) => {
          const name = `a${attempt}`;
          const acquiring = locks.acquire(name, options);
          const tookMs = await timed(async () => {
            await acquiring;
            await until("it gets in", () => foreigner.acquire(name, TTL_MS));
          });
          assert.ok(tookMs > 695, `it took ${tookMs} ms`);
          assert.equal((await acquiring).held, false);
          return tookMs;
        });
      },
    );

    itWith(
      who,
      "ioredis",
      "is shown as another program, not as one of our holders",
      async (locks, foreigner) => {
        assert.ok(await foreigner.acquire("a", TTL_MS));
        const { holders } = await locks.inspect("a");
        assert.equal(holders.length, 1);
        assert.equal(holders[0]?.label, "(another program)");
        assert.equal(holders[0]?.token, 0n);
        const listed = [];
        for await (const view of locks.list()) listed.push(view.resource);
        assert.deepEqual(listed, ["a"]);
      },
    );

    itWith(
      who,
      "ioredis",
      "that takes the lock before our waiters leaves them in order",
      async (locks, foreigner, redis) => {
        assert.ok(await foreigner.acquire("a", TTL_MS));
        const order: string[] = [];
        const wait = async (name: string) => {
          const lease = await locks.acquire("a", { fair: "strict" });
          order.push(name);
          await lease.release();
        };
        const first = wait("first");
        await redis.untilWaiters(locks, "a", 1);
        const second = wait("second");
        await redis.untilWaiters(locks, "a", 2);
        assert.ok(await foreigner.release("a"));
        await Promise.all([first, second]);
        assert.deepEqual(order, ["first", "second"]);
      },
    );
  }

  it("the key of an exclusive grant is the plain name, if the name needs no encoding", async (redis) => {
    await using locks = redis.locks({ prefix: "" });
    for (const name of ["invoice:42", "a b", "käse/🧀", "x*[y]?", "new\nline", "q\"uo'te"]) {
      const lease = await locks.acquire(name);
      assert.equal(await redis.admin.exists(name), 1, name);
      assert.equal(await redis.admin.type(name), "string");
      const left = await redis.admin.pttl(name);
      assert.ok(left > 20_000 && left <= 30_000, `${name} lives for ${left} ms`);
      await lease.release();
      assert.equal(await redis.admin.exists(name), 0, name);
    }
  });

  it("a waiter waits for a key without expiry like for any other", async (redis) => {
    await using locks = redis.locks({ prefix: "" });
    await redis.admin.set("a", "by hand");
    await assert.rejects(locks.acquire("a", { waitMs: 300 }), { code: "ACQUIRE_TIMEOUT" });
    const waiting = locks.acquire("a");
    await redis.untilWaiters(locks, "a", 1);
    await redis.admin.del("a");
    await waiting;
  });

  it("with the default prefix a foreigner and we do not exclude each other", async (redis) => {
    await using locks = redis.locks();
    await redis.admin.set("a", "by hand");
    assert.ok(await locks.tryAcquire("a"));
    assert.equal(await redis.admin.exists("holdfast:a"), 1);
  });
});

function byHand(redis: RedisTestServer): Foreigner {
  const value = "some random value";
  return {
    acquire: async (key, ttlMs) => (await redis.admin.set(key, value, "PX", ttlMs, "NX")) === "OK",
    release: async (key) => (await redis.admin.eval(COMPARE_AND_DELETE, 1, key, value)) === 1,
  };
}

function pythonLock(port: number): Foreigner {
  const ask = async (line: string) => {
    python.stdin!.write(`${line}\n`);
    return (await answers.next()).value === "1";
  };
  return {
    acquire: (key, ttlMs) => ask(`acquire ${port} ${ttlMs} ${key}`),
    release: (key) => ask(`release ${port} ${key}`),
  };
}
