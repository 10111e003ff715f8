// hold: "shedlock". All laws with it are in shedlock.long-test.ts.
import assert from "node:assert/strict";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineError } from "../../errors.js";
import { claim, type Ground, now, scenes, until } from "./ground.fixture.js";
import { createSchema } from "./index.js";

// What ShedLock sends with database time, name and times in place of its parameters.
const NOW = "timezone('utc', CURRENT_TIMESTAMP)";
const until_ = (ms: number) => `${NOW} + interval '${ms} milliseconds'`;

/** ShedLock's own lock: insert, or update where the time of the former one is over. */
async function shedLock(ground: Ground, name: string, ms: number, by = hostname()) {
  const insert = `INSERT INTO shedlock (name, lock_until, locked_at, locked_by)
    VALUES ($1, ${until_(ms)}, ${NOW}, $2) ON CONFLICT (name) DO UPDATE
    SET lock_until = ${until_(ms)}, locked_at = ${NOW}, locked_by = $2
    WHERE shedlock.name = $1 AND shedlock.lock_until <= ${NOW}`;
  return (await ground.admin.query(insert, [name, by])).rowCount === 1;
}

async function shedUnlock(ground: Ground, name: string, by = hostname()) {
  const text = `UPDATE shedlock SET lock_until = ${NOW} WHERE name = $1 AND locked_by = $2`;
  await ground.admin.query(text, [name, by]);
}

const HOLD = { hold: "shedlock" } as const;

scenes({ settings: ["timezone=Asia/Kathmandu"] }, (play) => {
  play(
    "the schema is made once, beside ShedLock's table, and kinds are not mixed up",
    async (ground) => {
      const engine = ground.engine(HOLD);
      await assert.rejects(engine.tryAcquire(claim("a"), now()), (error: EngineError) => {
        return /createSchema\(client, \{ shedlock: "shedlock" \}\)/.test(error.message);
      });
      await createSchema(ground.admin, { shedlock: "shedlock" });
      await createSchema(ground.admin, { shedlock: "public.shedlock" });
      assert.equal((await engine.tryAcquire(claim("a"), now())).kind, "granted");
      const mixed = ground.engine({ ...HOLD, schema: "holdfast" });
      await assert.rejects(
        mixed.tryAcquire(claim("a"), now()),
        /was not made for hold: "shedlock"/,
      );
    },
  );

  play("ShedLock is excluded while we hold, and we are while it does", async (ground) => {
    const locks = ground.locks(HOLD);
    const lease = await locks.acquire("b", { ttlMs: 10_000 });
    assert.equal(await shedLock(ground, "b", 1_000), false);
    await lease.renew({ ttlMs: 20_000 });
    assert.equal(await shedLock(ground, "b", 1_000), false);
    await lease.release();
    assert.equal(await shedLock(ground, "b", 30_000), true);
    assert.equal(await locks.tryAcquire("b"), null);
    assert.equal((await locks.inspect("b")).holders[0]?.label, hostname());
    const waiting = locks.acquire("b", { waitMs: 10_000 });
    await sleep(100);
    await shedUnlock(ground, "b");
    const next = await waiting;
    assert.ok(next.token > lease.token);
    await next.release();
    assert.equal(await shedLock(ground, "b", 300), true);
    const later = await locks.acquire("b", { waitMs: 10_000 });
    assert.equal(await shedLock(ground, "b", 1_000), false, "its time was over, and is ours now");
    await later.release();
  });

  play(
    "our release frees nobody else's run on the same host, which ShedLock's own does",
    async (ground) => {
      // ShedLock's: the first run's time is over, the second runs, and the first gives back what is not its.
      assert.equal(await shedLock(ground, "c1", 1), true);
      await sleep(20);
      assert.equal(await shedLock(ground, "c1", 30_000), true);
      await shedUnlock(ground, "c1");
      assert.equal(await shedLock(ground, "c1", 1_000), true, "ShedLock freed another run's lock");
      // Ours: the same schedule.
      const [first, second] = [ground.engine(HOLD), ground.engine(HOLD)];
      const early = claim("c2", { ttlMs: 100, label: hostname() });
      await first.tryAcquire(early, now());
      await sleep(150);
      const late = claim("c2", { ttlMs: 30_000, label: hostname() });
      assert.equal((await second.tryAcquire(late, now())).kind, "granted");
      const [answer] = await first.release([{ ...early, tombstoneMs: 0 }], now());
      assert.equal(answer!.kind, "gone");
      assert.equal(await shedLock(ground, "c2", 1_000), false, "the second run is still protected");
    },
  );

  play("a row that was taken away by hand costs the lease at its next renewal", async (ground) => {
    const locks = ground.locks(HOLD);
    const lease = await locks.acquire("d", { ttlMs: 600 });
    await ground.admin.query("DELETE FROM shedlock WHERE name = 'd'");
    await until("it is lost", () => !lease.held);
    assert.equal(await lease.release(), "gone");
  });

  play("once runs once against ShedLock too, and keeps it out for atLeastMs", async (ground) => {
    const [ours, other] = [ground.locks(HOLD), ground.locks(HOLD)];
    const options = { atMostMs: 20_000, atLeastMs: 700 };
    const from = performance.now();
    assert.equal((await ours.once("e", options, () => 1)).ran, true);
    assert.equal((await other.once("e", options, () => 1)).ran, false);
    assert.equal(await shedLock(ground, "e", 5_000), false);
    await until("ShedLock runs", () => shedLock(ground, "e", 5_000));
    assert.ok(performance.now() - from >= 690);
    assert.equal((await ours.once("e", options, () => 1)).ran, false);
  });

  play("a name that does not fit into ShedLock's column is refused", async (ground) => {
    const locks = ground.locks(HOLD);
    await assert.rejects(locks.tryAcquire("x".repeat(65)), { code: "ENGINE" });
  });
});
