import assert from "node:assert";
import { systemClock } from "../../clock.js";
import type { Engine, Queued } from "../../engine.js";
import { Locks } from "../../locks.js";
import type { LawGroup } from "../harness.js";
import { elapse, within } from "../patience.js";
import { law, type Stage } from "../stage.js";

/** What a busy machine may add to anything. */
const MARGIN_MS = 1_000;

/** Listens in on what the engine says about heartbeats. */
function overheard(engine: Engine): { engine: Engine; queued: Queued[] } {
  const queued: Queued[] = [];
  const { queue } = engine;
  assert(queue, "a law that uses the queue must say that it needs one");
  const enqueue: typeof queue.enqueue = async (claim, call) => {
    const answer = await queue.enqueue(claim, call);
    if (answer.kind === "queued") queued.push(answer);
    return answer;
  };
  const heard = Object.create(engine, {
    queue: { value: { ...queue, enqueue, heartbeat: queue.heartbeat.bind(queue) } },
  }) as Engine;
  return { engine: bound(heard, engine), queued };
}

/** Methods of the original with the original's this: private fields live there. */
function bound(view: Engine, original: Engine): Engine {
  const verbs = ["tryAcquire", "renew", "release", "check", "revoke", "inspect", "list", "close"];
  for (const verb of verbs as (keyof Engine)[]) {
    const method = original[verb];
    if (typeof method !== "function") continue;
    Object.defineProperty(view, verb, { value: (method as () => unknown).bind(original) });
  }
  return view;
}

/** Locks whose waiters are counted, and the interval at which the engine wants to hear of them. */
async function patient(s: Stage, pushes: "deliver" | "drop") {
  const { flakyEngine } = await import("../../testing/flaky-engine.js");
  const { engine, queued } = overheard(await s.engine());
  const flaky = flakyEngine(engine);
  flaky.pushes(pushes);
  return { locks: new Locks(flaky), queued };
}

/** From the release until the waiter has its lease. */
async function handOverMs(s: Stage, pushes: "deliver" | "drop") {
  const holder = await s.client();
  const { locks, queued } = await patient(s, pushes);
  const resource = s.resource();
  const held = await holder.take(resource);
  const acquiring = locks.acquire(resource, { waitMs: 15_000, fair: "strict" });
  acquiring.catch(() => {});
  await s.untilWaiters(locks, resource, 1);
  await elapse(30);
  const releasedAt = systemClock.now();
  await holder.giveBack(held.claim);
  await within(15_000, acquiring, "a waiter whose turn it is");
  const tookMs = systemClock.now() - releasedAt;
  await locks.close();
  assert(queued.length > 0, "the waiter stood in line");
  return { tookMs, intervalMs: queued[0]!.nextHeartbeatMs };
}

export const wake: LawGroup = {
  id: "L14",
  name: "wake-ups",
  text:
    "A waiter learns of its turn promptly, and a waiter whose wake-up is lost still gets its turn by " +
    "its heartbeat. An expiry, which pushes nothing, is found by heartbeat too.",
  laws: [
    law(
      "L14.1",
      "a release wakes the next waiter long before its heartbeat",
      ["queue"],
      async (s) => {
        // The best of three: one slow turn of a busy machine proves nothing.
        let best = Infinity;
        let bound = 0;
        for (let i = 0; i < 3 && best > bound; i++) {
          const { tookMs, intervalMs } = await handOverMs(s, "deliver");
          bound = Math.max(300, intervalMs / 2);
          best = Math.min(best, tookMs);
        }
        assert(best <= bound, `the hand-over took ${best.toFixed(0)} ms, and ${bound} is plenty`);
      },
    ),

    law(
      "L14.2",
      "a waiter whose wake-up is lost gets its turn by its heartbeat",
      ["queue"],
      async (s) => {
        const { tookMs, intervalMs } = await handOverMs(s, "drop");
        const boundMs = intervalMs * 1.5 + MARGIN_MS;
        assert(
          tookMs <= boundMs,
          `it took ${tookMs.toFixed(0)} ms, with ${intervalMs} between beats`,
        );
      },
    ),

    law("L14.3", "a waiter gets its turn soon after its predecessor expired", [], async (s) => {
      const [a, locks] = [await s.client(), await s.locks()];
      const resource = s.resource();
      const ttlMs = s.ttl(300);
      const { granted } = await a.take(resource, { ttlMs });
      if (s.traits.expiry === "session") await s.harness.sever?.(a.engine);
      const lease = await locks.acquire(resource, { waitMs: ttlMs + 10_000 });
      const lateMs = systemClock.now() - (granted.since + granted.ttlMs);
      assert(lateMs >= 0, "not before its end");
      assert(lateMs < ttlMs + MARGIN_MS, `${lateMs.toFixed(0)} ms after the holder's end`);
      assert.equal(lease.held, true);
    }),

    law(
      "L14.4",
      "a push that comes after the grant was learned otherwise harms nobody",
      ["queue"],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const holder = await s.client();
        const resource = s.resource();
        const held = await holder.take(resource);
        let late = () => {};
        flaky.pushes(
          new Promise<void>((resolve) => {
            late = resolve;
          }),
        );
        const acquiring = locks.acquire(resource, { waitMs: 15_000, fair: "strict" });
        await s.untilWaiters(locks, resource, 1);
        await holder.giveBack(held.claim);
        const lease = await within(15_000, acquiring, "a waiter without its push");
        assert.equal(await lease.release(), "released");
        late();
        await elapse(10);
        await s.untilEmpty(holder, resource);
        const next = await locks.tryAcquire(resource);
        assert(next !== null && next.token > lease.token);
      },
    ),

    law(
      "L14.5",
      "a push that comes after its grant expired makes no lease",
      ["queue", "age"],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const [holder, other] = await s.clients(2);
        const resource = s.resource();
        const held = await holder!.take(resource);
        let late = () => {};
        flaky.pushes(
          new Promise<void>((resolve) => {
            late = resolve;
          }),
        );
        flaky.inject("heartbeat", { kind: "fail" }, 1_000);
        const ttlMs = s.ttl(400);
        const acquiring = locks.acquire(resource, { ttlMs, waitMs: 10_000, fair: "strict" });
        acquiring.catch(() => {});
        await s.untilWaiters(locks, resource, 1);
        await holder!.giveBack(held.claim);
        await elapse(ttlMs * 1.3);
        const live = await other!.take(resource);
        late();
        await elapse(50);
        await other!.holdersAre(resource, live.token);
        assert.equal(await other!.check(resource, live.token), true);
        await locks.close();
        await assert.rejects(acquiring);
      },
    ),

    law("L14.6", "every one of many waiters is woken, one release at a time", [], async (s) => {
      const all = [await s.locks(), await s.locks()];
      const resource = s.resource();
      const lease = await all[0]!.acquire(resource);
      let served = 0;
      const works = Array.from({ length: 20 }, (_, i) =>
        all[i % 2]!.run(resource, { waitMs: 15_000, fair: i % 4 < 2 ? "strict" : "cohort" }, () => {
          served++;
        }),
      );
      await elapse(30);
      await lease.release();
      await within(15_000, Promise.all(works), "all waiters");
      assert.equal(served, 20);
    }),
  ],
};
