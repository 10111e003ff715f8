import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import type { Claim } from "../../engine.js";
import { type Client, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, outcome, within } from "../timing.js";

const MARGIN_MS = 5_000;
/** A backend may tolerate this many missed heartbeats. */
const FORGIVEN = 3;

/** Sends heartbeats like core, and returns how long the grant took to come. */
async function turnMs(client: Client, claim: Claim, boundMs: number): Promise<number> {
  const from = systemClock.now();
  for (;;) {
    const call = client.call();
    const answer = await client.heartbeat(claim, call);
    const tookMs = systemClock.now() - from;
    if (answer.kind === "granted") return tookMs;
    const { nextHeartbeatMs } = expectKind(answer, "queued", "a waiter behind dead ones");
    assert(tookMs < boundMs, `dead waiters still block after ${tookMs.toFixed(0)} ms`);
    await elapse(Math.min(nextHeartbeatMs, Math.max(10, boundMs - tookMs)));
  }
}

async function behindTheDead(s: LawContext, dead: number, bury: (client: Client) => Promise<void>) {
  const [holder, b] = await s.clients(2);
  const resource = s.resource();
  const ttlMs = s.ttl(200);
  const held = await holder!.take(resource);
  let beatMs = 0;
  for (let i = 0; i < dead; i++) {
    const ghost = await s.client();
    const claim = ghost.claim(resource, { ttlMs });
    const queued = expectKind(await ghost.enqueue(claim), "queued", "a waiter");
    beatMs = Math.max(beatMs, queued.nextHeartbeatMs);
    await bury(ghost);
  }
  const waiter = await b!.wait(resource);
  await holder!.releaseHeld(held.claim);
  await turnMs(b!, waiter, dead * Math.max(ttlMs, FORGIVEN * beatMs) + MARGIN_MS);
  await b!.releaseHeld(waiter);
  await s.untilEmpty(holder!, resource);
}

export const deadWaiters: LawGroup = {
  id: "L16",
  name: "dead waiters",
  text:
    "A waiter that stops sending heartbeats delays those behind it by a bounded time: its ttl, or a " +
    "few heartbeats.",
  laws: [
    law(
      "L16.1",
      "a waiter that becomes silent delays the next one by a bounded time",
      ["queue"],
      (s) => behindTheDead(s, 1, async () => {}),
    ),

    law(
      "L16.2",
      "several silent waiters delay the next one by a bounded time each",
      ["queue"],
      (s) => behindTheDead(s, 3, async () => {}),
    ),

    law(
      "L16.3",
      "a waiter whose client was closed delays the next one by a bounded time",
      ["queue"],
      (s) => behindTheDead(s, 1, (ghost) => within(10_000, ghost.engine.close(), "close()")),
    ),

    law(
      "L16.4",
      "a silent waiter does not block claims that do not wait for ever",
      ["queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const ttlMs = s.ttl(200);
        const held = await a!.take(resource);
        const claim = b!.claim(resource, { ttlMs });
        const queued = expectKind(await b!.enqueue(claim), "queued", "a waiter");
        await a!.releaseHeld(held.claim);
        const boundMs = Math.max(ttlMs, FORGIVEN * queued.nextHeartbeatMs) + MARGIN_MS;
        const deadline = systemClock.now() + boundMs;
        while ((await a!.try(a!.claim(resource))).kind !== "granted") {
          assert(systemClock.now() < deadline, `still busy after ${boundMs} ms`);
          await elapse(20);
        }
        const late = await b!.heartbeat(claim);
        assert.notEqual(late.kind, "granted", "a waiter that missed its turn");
      },
    ),

    law(
      "L16.5",
      "a waiting process killed with SIGKILL delays the next one by a bounded time",
      ["url"],
      async (s) => {
        const [locks, other] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const ttlMs = s.ttl(800);
        const lease = await locks.acquire(resource);
        const child = s.child({ resource, options: { ttlMs, waitMs: 60_000 }, does: "wait" });
        await child.until("waiting");
        await s.untilWaiters(locks, resource, 1);
        await child.end();
        const acquiring = other.acquire(resource, { waitMs: 40_000 });
        acquiring.catch(() => {});
        await elapse(30);
        const from = systemClock.now();
        await lease.release();
        await within(40_000, acquiring, "a waiter behind a killed one");
        const tookMs = systemClock.now() - from;
        assert(tookMs < ttlMs + 20_000, `the killed waiter cost ${tookMs.toFixed(0)} ms`);
      },
    ),

    law(
      "L16.6",
      "a waiting process that is stopped delays the next one, and gets its turn later",
      ["url", "queue"],
      async (s) => {
        const [locks, other] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const ttlMs = s.ttl(600);
        const lease = await locks.acquire(resource);
        const child = s.child({ resource, options: { ttlMs, waitMs: 60_000 }, does: "wait" });
        await s.untilWaiters(locks, resource, 1);
        child.signal("SIGSTOP");
        const acquiring = other.acquire(resource, { waitMs: 40_000 });
        await s.untilWaiters(locks, resource, 2);
        await lease.release();
        const next = await within(40_000, acquiring, "a waiter behind a stopped one");
        child.signal("SIGCONT");
        const early = await outcome(child.until("held", 400), 600);
        assert.equal(early.is, "error", "the stopped waiter must not hold beside its successor");
        assert.equal(next.held, true);
        assert.equal(await next.release(), "released");
        const { token } = await child.until("held");
        assert(BigInt(token) > next.token, "its grant is a new one");
      },
    ),
  ],
};
