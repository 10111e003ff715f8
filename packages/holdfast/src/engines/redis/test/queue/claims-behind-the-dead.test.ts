// A claim that does not wait, behind waiters of whom nobody can be let in.
import assert from "node:assert/strict";
import type { Claim } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { silence } from "../support/record.fixture.js";
import { type Ground, scenes } from "../support/test-server.fixture.js";

const WAITERS = "{holdfast:a}:waiters";

const KINDS: Record<string, Partial<Claim>> = {
  exclusive: {},
  "shared, limit 1": { mode: "shared", limit: 1 },
};

scenes("a claim that does not wait", (play) => {
  for (const [kind, terms] of Object.entries(KINDS)) {
    play(`gets what is free though a waiter has died (${kind})`, async (ground) => {
      const { other, held, relay } = await stand(ground, terms);
      relay.cut();
      await until("nobody listens for the dead", async () => (await listeners(ground)) === 1);
      await other.release([{ ...held, tombstoneMs: 0 }], now());
      const next = claim("a", terms);
      assert.equal((await other.tryAcquire(next, now())).kind, "granted");
      // The place of the dead is kept, and is in nobody's way.
      await other.release([{ ...next, tombstoneMs: 0 }], now());
      assert.equal((await other.tryAcquire(claim("a", terms), now())).kind, "granted");
    });

    play(`does not overtake a waiter that is listened for (${kind})`, async (ground) => {
      const { ours, other, held, waiter } = await stand(ground, terms);
      const told: string[] = [];
      ours.queue!.onGrant(({ grantId }) => void told.push(grantId));
      // It is late, as after a pause of its process. Nobody else waits, so the turn is its own.
      await silence(ground.admin, "a", 3_000);
      await ground.admin.del("holdfast:a");
      assert.equal((await other.tryAcquire(claim("a", terms), now())).kind, "busy");
      await until("the waiter is told", () => told.includes(waiter.grantId));
      assert.equal((await other.renew([{ ...held, ttlMs: 1_000 }], now()))[0]?.kind, "gone");
    });
  }

  play("leaves a turn to a waiter that hears no pushes but lives", async (ground) => {
    const { ours, other, held, waiter, relay } = await stand(ground, {}, true);
    relay.cut();
    await until("nobody listens for it", async () => (await listeners(ground)) === 1);
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    const overtaking = claim("a");
    assert.equal((await other.tryAcquire(overtaking, now())).kind, "granted");
    // Passed over for so long, and heard of just now.
    await silence(ground.admin, "a", 4_000);
    const record = (await ground.admin.hget(WAITERS, waiter.grantId)) ?? "";
    const since = record.replace(/:(\d{13}):\d{13}:/, (_, heard) => `:${Date.now()}:${heard}:`);
    assert.notEqual(since, record, "it is remembered that it was passed over");
    await ground.admin.hset(WAITERS, waiter.grantId, since);
    await other.release([{ ...overtaking, tombstoneMs: 0 }], now());
    assert.equal((await other.tryAcquire(claim("a"), now())).kind, "busy");
    const [answer] = await ours.queue!.heartbeat([waiter], now());
    assert.equal(answer?.kind, "granted");
  });
});

/** A holder, and a waiter of another process; deafOnly cuts off no more than what it hears. */
async function stand(ground: Ground, terms: Partial<Claim>, deafOnly = false) {
  const relay = await ground.relay();
  const ours = ground.engine(deafOnly ? { pushPort: relay.port } : { port: relay.port });
  const other = ground.engine();
  const [held, waiter] = [claim("a", terms), claim("a", terms)];
  await other.tryAcquire(held, now());
  await ours.queue!.enqueue(waiter, now());
  await until("both listen", async () => (await listeners(ground)) === 2);
  return { ours, other, held, waiter, relay };
}

async function listeners(ground: Ground): Promise<number> {
  return ((await ground.admin.pubsub("CHANNELS", "holdfast.push.*")) as string[]).length;
}
