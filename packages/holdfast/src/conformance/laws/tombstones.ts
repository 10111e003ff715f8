import assert from "node:assert";
import type { Claim } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { flakyEngine } from "../../testing/flaky-engine.js";
import { expectKind } from "../client.js";
import { law } from "../law.js";

/** Longer than any law. */
export const TOMBSTONE_MS = 60_000;
/** No network keeps a request for longer. */
const TWO_MINUTES_MS = 120_000;
/** A moment before the end of a tombstone, with a margin for a busy machine. */
const LAST_MS = 15_000;

export const tombstoneLaws = [
  law("L11.5", "a late acquire after a release with a tombstone is gone", [], async (s) => {
    const [a, b] = await s.clients(2);
    const claim = a!.claim(s.resource());
    expectKind(await a!.release(claim, TOMBSTONE_MS), "gone", "the release of what never arrived");
    for (const client of [a!, b!, a!]) {
      expectKind(await client.try(claim), "gone", "an acquire that arrives after its release");
    }
    await b!.holdersAre(claim.resource);
    await b!.take(claim.resource);
    expectKind(await a!.try(claim), "gone", "the same while another holds");
  }),

  law("L11.6", "a late enqueue after a release with a tombstone is gone", ["queue"], async (s) => {
    const [a, b] = await s.clients(2);
    const [free, taken] = [a!.claim(s.resource("free")), a!.claim(s.resource("taken"))];
    const held = await b!.take(taken.resource);
    for (const claim of [free, taken]) {
      expectKind(
        await a!.release(claim, TOMBSTONE_MS),
        "gone",
        "the release of what never arrived",
      );
      expectKind(await a!.enqueue(claim), "gone", "an enqueue that arrives after its release");
      expectKind(await a!.heartbeat(claim), "unknown", "its heartbeat");
      assert.equal((await b!.inspect(claim.resource)).waiters.length, 0);
    }
    await b!.releaseHeld(held.claim);
    await s.untilEmpty(b!, taken.resource);
    await s.untilEmpty(b!, free.resource);
  }),

  law(
    "L11.7",
    "a release with a tombstone ends what is there, and keeps it ended",
    [],
    async (s) => {
      const [a, b] = await s.clients(2);
      const { claim } = await a!.take(s.resource());
      expectKind(await a!.release(claim, TOMBSTONE_MS), "released", "a live grant");
      expectKind(await a!.try(claim), "gone", "the acquire, resent");
      expectKind(await a!.release(claim, TOMBSTONE_MS), "gone", "the release, resent");
      expectKind(await a!.try(claim), "gone", "the acquire, resent again");
      await b!.take(claim.resource);
    },
  ),

  law(
    "L11.8",
    "a waiter released with a tombstone cannot join the queue again",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      expectKind(await b!.release(waiter, TOMBSTONE_MS), "released", "a waiter");
      expectKind(await b!.enqueue(waiter), "gone", "the enqueue, resent");
      expectKind(await b!.try(waiter), "gone", "the same by tryAcquire");
      assert.equal((await a!.inspect(resource)).waiters.length, 0);
      await a!.releaseHeld(held.claim);
      await s.untilEmpty(b!, resource);
    },
  ),

  law("L11.9", "a tombstone concerns its grantId only", [], async (s) => {
    const a = await s.client();
    const resource = s.resource();
    expectKind(await a.release(a.claim(resource), TOMBSTONE_MS), "gone", "the release of nothing");
    const { claim } = await a.take(resource);
    expectKind(await a.renew(claim), "renewed", "another grantId on the same resource");
  }),
];

export const lastingTombstoneLaws = [
  law("L11.13", "a tombstone lasts at least as long as requested", ["tombstones"], async (s) => {
    const [a, b] = await s.clients(2);
    const claims = [a!.claim(s.resource("missing")), (await a!.take(s.resource("held"))).claim];
    for (const claim of claims) {
      await a!.release(claim, TOMBSTONE_MS);
      await s.harness.ageTombstones!(claim.resource, TOMBSTONE_MS - LAST_MS);
      for (const client of [a!, b!]) {
        expectKind(await client.try(claim), "gone", "an acquire shortly before it is over");
        if (s.harness.queue === false) continue;
        expectKind(await client.enqueue(claim), "gone", "an enqueue shortly before it is over");
      }
      // A tombstone may last longer. Without this check, a harness that ages nothing would pass the
      // law too.
      await s.harness.ageTombstones!(claim.resource, 10 * TOMBSTONE_MS);
      expectKind(await b!.try(claim), "granted", "the same once it is over");
    }
  }),

  law(
    "L11.14",
    "through the API, a request that arrives two minutes after its claim ended is refused",
    ["tombstones"],
    async (s) => {
      const [engine, other] = [await s.engine(), await s.client()];
      const asked: Claim[] = [];
      const { tryAcquire } = engine;
      engine.tryAcquire = (claim, call) => {
        asked.push(claim);
        return tryAcquire.call(engine, claim, call);
      };
      const flaky = flakyEngine(engine);
      flaky.inject("tryAcquire", { kind: "lose-reply" });
      const acquiring = s.locksOn(flaky).acquire(s.resource(), { waitMs: 0, fair: "strict" });
      await assert.rejects(acquiring, EngineError);
      const [claim] = asked;
      await s.untilEmpty(other, claim!.resource);
      await s.harness.ageTombstones!(claim!.resource, TWO_MINUTES_MS - LAST_MS);
      expectKind(await other.try(claim!), "gone", "an acquire that arrives two minutes late");
    },
  ),
];
