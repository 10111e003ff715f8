// ioredis sends unanswered commands again when it reconnects. The first copy may have been run
// while the repeat is refused, or may arrive after everything else.
import assert from "node:assert/strict";
import type { Redis } from "ioredis";
import type { Claim, Engine } from "../../../../engine.js";
import { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import {
  describeWithServer,
  PROMPT,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const KEY = "holdfast:a";

/** Commands that make a server refuse writes, and that end it. */
const REFUSALS: Readonly<Record<string, readonly [on: string[], off: string[]]>> = {
  OOM: [
    ["CONFIG", "SET", "maxmemory", "1"],
    ["CONFIG", "SET", "maxmemory", "0"],
  ],
  READONLY: [
    ["REPLICAOF", "127.0.0.1", "1"],
    ["REPLICAOF", "NO", "ONE"],
  ],
  NOREPLICAS: [
    ["CONFIG", "SET", "min-replicas-to-write", "9"],
    ["CONFIG", "SET", "min-replicas-to-write", "0"],
  ],
};

const KINDS: Readonly<Record<string, Partial<Claim>>> = {
  exclusive: {},
  shared: { mode: "shared" },
  "exclusive with a lock-delay": { lockDelayMs: 5_000 },
};

/** With these options ioredis is ready as soon as it is connected, and sends nothing by itself. */
const BARE = { enableReadyCheck: false, disableClientInfo: true, protocol: 2 } as const;

describeWithServer("a claim that is run, and whose repeat is refused", (it) => {
  for (const why of Object.keys(REFUSALS)) {
    it(`is a failure of unknown effect (${why})`, async (redis) => {
      const { engine, loseAnswer } = await relayed(redis);
      await engine.tryAcquire(claim("warm up"), now());
      await refuseRepeat(redis, why, loseAnswer, () => engine.tryAcquire(claim("a"), now()));
    });

    it(`leaves nothing behind, with waiting and without (${why})`, async (redis) => {
      const relay = await redis.relay();
      const locks = redis.locks({ port: relay.port, pushPort: redis.server.port });
      await (await locks.acquire("warm up")).release();
      for (const waitMs of [0, 5_000]) {
        await refuseRepeat(
          redis,
          why,
          (arrived) => cutOnce(relay, arrived),
          () => locks.acquire("a", { waitMs }),
        );
        await until("its grant is released", async () => !(await redis.admin.exists(KEY)), 20_000);
      }
    });
  }

  it("is a failure of unknown effect also as the first call of a client", async (redis) => {
    const relay = await redis.relay();
    // The server must know the script. Otherwise its NOSCRIPT answer would be lost as well.
    await redis.engine().tryAcquire(claim("warm up"), now());
    relay.mute();
    const options = { port: relay.port, pushPort: redis.server.port, ioredis: BARE };
    const engine = redis.engine(options);
    const asked = engine.tryAcquire(claim("a"), now());
    await redis.admin.ping();
    await refuseRepeat(
      redis,
      "OOM",
      (arrived) => cutOnce(relay, arrived),
      () => asked,
    );
  });

  it("is a failure of unknown effect for each claim of a batch", async (redis) => {
    const { engine, loseAnswer } = await relayed(redis);
    await engine.tryAcquire(claim("warm up"), now());
    const asked = () =>
      Promise.all(["b", "a"].map((name) => engine.tryAcquire(claim(name), now())));
    await refuseRepeat(redis, "OOM", loseAnswer, asked);
  });
});

describeWithServer(
  "a claim with replicas that is run, and whose repeat is refused",
  (it) => {
    it("is a failure of unknown effect", async (redis) => {
      await redis.replicas(1);
      const relay = await redis.relay();
      // Pushes and claims that wait for replicas have their own connections, which go through the
      // relay.
      const options = { pushPort: relay.port, replicas: { wait: 1, timeoutMs: 5_000 } };
      const engine = redis.engine(options);
      await engine.tryAcquire(claim("warm up"), now());
      await refuseRepeat(
        redis,
        "OOM",
        (arrived) => cutOnce(relay, arrived),
        () => engine.tryAcquire(claim("a"), now()),
      );
    });

    it("is answered even if the client is configured to send nothing again", async (redis) => {
      await redis.replicas(1);
      const relay = await redis.relay();
      const replicas = { wait: 1, timeoutMs: 5_000 };
      const ioredis = { autoResendUnfulfilledCommands: false };
      const engine = redis.engine({ pushPort: relay.port, replicas, ioredis });
      await engine.tryAcquire(claim("warm up"), now());
      const mine = claim("a");
      const asked = engine.tryAcquire(mine, now());
      await cutOnce(relay, async () => {
        await until("the claim is run", () => redis.admin.exists(KEY), 20_000);
      });
      // With that setting, ioredis alone never answers such a command, nor those that wait behind
      // it.
      await asked.catch(() => {});
      assert.equal((await engine.tryAcquire(mine, now())).kind, "granted");
    });
  },
  PROMPT,
);

describeWithServer("the first copy of a claim, where it arrives last", (it) => {
  for (const kind of Object.keys(KINDS)) {
    for (const verb of ["tryAcquire", "enqueue"] as const) {
      it(`is refused after a release (${kind}, ${verb})`, async (redis) => {
        const { engine, resend, deliver } = await holdBack(redis);
        const mine = claim("a", KINDS[kind]);
        const asked =
          verb === "enqueue" ? engine.queue!.enqueue(mine, now()) : engine.tryAcquire(mine, now());
        await resend();
        assert.equal((await asked).kind, "granted");
        assert.equal(await released(engine, mine), "released");
        await deliver();
        assert.equal(await redis.admin.exists(KEY), 0);
      });
    }
  }

  it("is refused after a release that had to be repeated", async (redis) => {
    const { engine, resend, deliver } = await holdBack(redis);
    const mine = claim("a");
    const asked = engine.tryAcquire(mine, now());
    await resend();
    assert.equal((await asked).kind, "granted");
    assert.equal(await released(engine, mine), "released");
    assert.equal(await released(engine, mine), "gone");
    await deliver();
    assert.equal(await redis.admin.exists(KEY), 0);
  });

  it("is refused after the repeat was answered busy", async (redis) => {
    const { engine, resend, deliver } = await holdBack(redis);
    const other = redis.engine();
    const theirs = claim("a");
    await other.tryAcquire(theirs, now());
    const asked = engine.tryAcquire(claim("a"), now());
    await resend();
    assert.equal((await asked).kind, "busy");
    await until("it has a tombstone", () => redis.admin.exists(`{${KEY}}:gone`));
    await released(other, theirs);
    await deliver();
    assert.equal(await redis.admin.exists(KEY), 0);
  });

  it("does not join the queue after a withdrawal", async (redis) => {
    const { engine, resend, deliver } = await holdBack(redis);
    const other = redis.engine();
    await other.tryAcquire(claim("a"), now());
    const mine = claim("a");
    const asked = engine.queue!.enqueue(mine, now());
    await resend();
    assert.equal((await asked).kind, "queued");
    assert.equal((await engine.queue!.withdraw(mine, now())).kind, "withdrawn");
    await until("it has a tombstone", () => redis.admin.exists(`{${KEY}}:gone`));
    await deliver();
    assert.equal(await redis.admin.exists(`{${KEY}}:queue`), 0);
  });

  for (const waitMs of [0, 5_000]) {
    it(`blocks for one ttl if its grant had expired unreleased (waitMs ${waitMs})`, async (redis) => {
      const { lost, deliver, others } = await expireUnreleased(redis, waitMs);
      const between = await others.acquire("a");
      await between.release();
      await deliver();
      // It makes another grant. No lease belongs to it, and the old token cannot write data.
      const [holder, ...more] = (await others.inspect("a")).holders;
      assert.ok(holder!.token > between.token && more.length === 0);
      assert.deepEqual([lost.held, await others.check(lost.sequencer)], [false, false]);
      await assert.rejects(lost.renew(), { code: "LEASE_LOST" });
      assert.equal(await others.tryAcquire("a"), null, "there are two holders");
      assert.equal(await lost.release(), "gone");
      const next = await others.acquire("a", { waitMs: 20_000 });
      assert.ok(next.token > holder!.token);
      assert.deepEqual([next.held, lost.held], [true, false]);
    });
  }

  it("waits behind another holder if its grant had expired unreleased, and ends there", async (redis) => {
    const { lost, deliver, others } = await expireUnreleased(redis, 5_000);
    const between = await others.acquire("a");
    await deliver();
    const waiting = others.acquire("a", { waitMs: 20_000, fair: "strict" });
    await between.release();
    const next = await waiting;
    assert.ok(next.token > between.token);
    assert.deepEqual([next.held, lost.held], [true, false]);
    await next.release();
    assert.ok(await others.tryAcquire("a"), "a grant is left behind");
  });

  it("leaves no tombstone if the connection was not lost", async (redis) => {
    const engine = redis.engine();
    const mine = claim("a");
    await engine.tryAcquire(mine, now());
    assert.equal(await released(engine, mine), "released");
    assert.equal(await redis.admin.exists(`{${KEY}}:gone`), 0);
  });
});

/**
 * A lease whose claim was sent twice; lost and not released, because its lock-delay must keep
 * others out.
 */
async function expireUnreleased(redis: RedisTestServer, waitMs: number) {
  const { engine, resend, deliver } = await holdBack(redis);
  const [locks, others] = [new Locks(engine), redis.locks()];
  const terms = { ttlMs: 2_000, lockDelayMs: 200, renew: false, fair: "strict" } as const;
  const acquiring = locks.acquire("a", { ...terms, waitMs });
  await resend();
  const lost = await acquiring;
  await until("it is lost", () => !lost.held, 20_000);
  await until("its key is gone", async () => !(await redis.admin.exists(KEY)), 20_000);
  return { lost, deliver, others };
}

async function released(engine: Engine, ref: Claim): Promise<string> {
  const [answer] = await engine.release([{ ...ref, tombstoneMs: 0 }], now());
  return answer!.kind;
}

async function relayed(redis: RedisTestServer) {
  const relay = await redis.relay();
  const engine = redis.engine({ port: relay.port, pushPort: redis.server.port });
  return { engine, loseAnswer: (arrived: () => Promise<void>) => cutOnce(relay, arrived) };
}

/** Lets requests through and drops answers until `arrived` resolves. Then cuts the connection. */
async function cutOnce(
  relay: Awaited<ReturnType<RedisTestServer["relay"]>>,
  arrived: () => Promise<void>,
): Promise<void> {
  relay.mute();
  await arrived();
  relay.cut();
  relay.mend();
}

async function refuseRepeat(
  redis: RedisTestServer,
  why: string,
  loseAnswer: (arrived: () => Promise<void>) => Promise<void>,
  ask: () => Promise<unknown>,
): Promise<void> {
  const [on, off] = REFUSALS[why]!;
  const losing = loseAnswer(async () => {
    await until("the claim is run", () => redis.admin.exists(KEY), 20_000);
    await redis.admin.call(on[0]!, ...on.slice(1));
  });
  const error = await ask().then(
    () => assert.fail("it was not refused"),
    (refusal: { code?: string; effect?: string }) => refusal,
  );
  await losing;
  await redis.admin.call(off[0]!, ...off.slice(1));
  assert.deepEqual([error.code, error.effect], ["ENGINE", "unknown"]);
}

/**
 * An engine whose requests are held back. resend makes its client send them again, past the relay.
 */
async function holdBack(redis: RedisTestServer) {
  const relay = await redis.relay();
  let client: Redis;
  const shows = (own: Redis) => {
    client = own;
  };
  const engine = redis.engine({ port: relay.port, pushPort: redis.server.port, shows });
  await engine.tryAcquire(claim("warm up"), now());
  relay.hold();
  const resend = async () => {
    // The request leaves in the next turn of the event loop.
    await redis.admin.ping();
    Object.assign(client!.options, { port: redis.server.port });
    client!.disconnect(true);
  };
  const deliver = async () => {
    const before = await redis.calls("evalsha");
    relay.deliver();
    await until("it arrives", async () => (await redis.calls("evalsha")) > before, 20_000);
  };
  return { engine, resend, deliver };
}
