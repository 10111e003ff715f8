// What the server refuses to do: it is out of memory, busy, or finds something else under a key.
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
  type Ground,
  scenes,
} from "../support/test-server.fixture.js";

const refused = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof EngineError);
  assert.equal(error.effect, "none");
  assert.match(error.message, pattern);
  return true;
};

scenes(
  "refusals",
  (play) => {
    for (const client of CLIENT_NAMES) {
      play(
        `without memory an acquire is refused without effect, and a release works (${client})`,
        async (ground) => {
          const [ours, other] = [ground.locks({ client }), ground.locks()];
          const held = await ours.acquire("a");
          const reader = await ours.acquire("b", { mode: "shared" });
          await withoutMemory(ground, async () => {
            await assert.rejects(other.acquire("c"), refused(/out of memory/));
            await assert.rejects(other.acquire("a", { waitMs: 5_000 }), refused(/out of memory/));
            await assert.rejects(
              other.tryAcquire("c", { mode: "shared" }),
              refused(/out of memory/),
            );
            // A plain renewal takes no memory.
            await held.renew();
            assert.equal(await held.release(), "released");
            assert.equal(await reader.release(), "released");
          });
          for (const name of ["a", "b", "c"]) {
            const { holders, waiters } = await ours.inspect(name);
            assert.deepEqual([name, holders, waiters], [name, [], []]);
          }
          assert.ok(await other.tryAcquire("c"));
        },
      );

      play(
        `a script of another client makes ours wait, not fail for good (${client})`,
        async (ground) => {
          const ours = ground.locks({ client });
          const held = await ours.acquire("a", { ttlMs: 20_000 });
          const busy = await slowScript(ground, 2_000);
          await assert.rejects(ours.acquire("b"), refused(/busy with another script/));
          const retry = Array<number>(200).fill(100);
          const patient = await ours.acquire("c", { retry });
          await busy.end;
          assert.ok(held.held && patient.held);
          await held.renew();
          assert.equal(await held.release(), "released");
        },
      );
    }

    play("a claim that was refused is not remembered as a waiter", async (ground) => {
      const locks = ground.locks();
      await ground.locks().acquire("a", { mode: "shared", limit: 2 });
      await assert.rejects(locks.acquire("a", { mode: "shared", limit: 3 }), /limit/);
      await withoutMemory(ground, () =>
        assert.rejects(locks.acquire("b"), refused(/out of memory/)),
      );
      // Waiters that an engine still knows of leave their lines when it is closed.
      const left = async () => /cmdstat_zrem:calls=\d+/.exec(await ground.admin.info("all"))?.[0];
      const before = await left();
      await locks.close();
      assert.equal(await left(), before);
    });

    play("an acquire that was given up without memory is buried all the same", async (ground) => {
      // The answer to the acquire was lost, so its release asks for a tombstone, which takes memory.
      const engine = ground.engine();
      const lost = claim("a");
      await engine.tryAcquire(lost, now());
      await withoutMemory(ground, async () => {
        const [answer] = await engine.release([{ ...lost, tombstoneMs: 60_000 }], now());
        assert.equal(answer?.kind, "released");
      });
      assert.equal((await engine.tryAcquire(lost, now())).kind, "gone");
      assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "granted");
    });

    play("a waiter is let in by a release without memory", async (ground) => {
      const [ours, other] = [ground.locks(), ground.locks()];
      const held = await other.acquire("a");
      const waiting = ours.acquire("a", { ttlMs: 30_000 });
      await ground.untilWaiters(other, "a", 1);
      await withoutMemory(ground, async () => {
        assert.equal(await held.release(), "released");
        await waiting;
      });
    });

    play(
      "a key that holds something else refuses its own resource, and no other in the same call",
      async (ground) => {
        const locks = ground.locks();
        await ground.admin.rpush("holdfast:list", "1");
        await ground.admin.sadd("{holdfast:queue}:queue", "1");
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
        assert.equal(await ground.admin.llen("holdfast:list"), 1);
      },
    );

    play("renewals of a resource whose key was broken do not delay the others", async (ground) => {
      const locks = ground.locks();
      const names = Array.from({ length: 50 }, (_, i) => `r${i}`);
      const leases = await Promise.all(names.map((name) => locks.acquire(name, { ttlMs: 4_000 })));
      await ground.admin.del("holdfast:r7");
      await ground.admin.rpush("holdfast:r7", "1");
      await sleep(6_000);
      const lost = leases.filter((lease) => !lease.held).map((lease) => lease.resource);
      assert.deepEqual(lost, ["r7"]);
    });

    play("list passes over keys that are no locks", async (ground) => {
      const locks = ground.locks({ prefix: "" });
      await ground.admin.rpush("a list", "1");
      await ground.admin.hset("a hash", "field", "1");
      await ground.admin.zadd("{a set}:queue", 1, "member");
      await locks.acquire("a lock");
      const found = [];
      for await (const view of locks.list()) found.push(view.resource);
      assert.deepEqual(found, ["a lock"]);
    });

    for (const client of CLIENT_NAMES) {
      play(
        `a process whose server was never reached ends after close (${client})`,
        async (ground) => {
          await soon(2_000, async () => {
            const child = ground.child("unreachable", [String(await freePort()), client]);
            const exited = once(child.process, "exit");
            const [told, closedMs] = ((await child.line()) ?? "").split(" ");
            assert.equal(told, "ENGINE");
            // ioredis itself waits 2 s for a connection that it was told to end.
            const ended = await Promise.race([exited, sleep(20_000, null, { ref: false })]);
            assert.ok(ended !== null, "something keeps it alive");
            return Number(closedMs);
          });
        },
      );
    }

    play(
      "a server that goes away while a client waits is told as such, never as busy",
      async (ground) => {
        const relay = await ground.relay();
        for (const client of CLIENT_NAMES satisfies readonly ClientName[]) {
          const locks = ground.locks({ client, port: relay.port });
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
      },
    );
  },
  { args: ["--busy-reply-threshold", "20"] },
);

async function withoutMemory(ground: Ground, work: () => Promise<void>): Promise<void> {
  await ground.admin.config("SET", "maxmemory-policy", "noeviction");
  await ground.admin.config("SET", "maxmemory", "1mb");
  try {
    await work();
  } finally {
    await ground.admin.config("SET", "maxmemory", "0");
  }
}

/** Keeps the server busy; resolves when it answers BUSY to everybody, with the end of it. */
async function slowScript(ground: Ground, ms: number): Promise<{ end: Promise<unknown> }> {
  const script = `
    local function ms() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
    local from = ms()
    while ms() - from < tonumber(ARGV[1]) do end`;
  const end = ground.ioRedis().eval(script, 0, ms);
  await until("the server is busy", () =>
    ground.admin.ping().then(
      () => false,
      () => true,
    ),
  );
  return { end };
}
