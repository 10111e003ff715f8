import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";

/** A grant with a lock-delay that has just expired. */
async function closed(s: LawContext, mode: "exclusive" | "shared" = "exclusive") {
  const [a, b] = await s.clients(2);
  const resource = s.resource();
  const terms = { mode, ttlMs: s.lifeMs, lockDelayMs: s.delayMs };
  const stale = await a!.take(resource, terms);
  await s.expire(resource, s.lifeMs, a!);
  const staysClosed = (why: string) => b!.refused(resource, {}, why);
  const opens = async () => {
    await s.pass(resource, s.delayMs);
    return b!.take(resource);
  };
  return { a: a!, b: b!, resource, stale, staysClosed, opens };
}

export const lockDelay: LawGroup = {
  id: "L17",
  name: "lock-delay",
  text:
    "After a grant with a lock-delay was lost, but not after a release, the resource stays closed " +
    "for that delay. Nothing that the late holder sends opens it earlier.",
  laws: [
    law(
      "L17.1",
      "an expired grant keeps the resource closed for its lock-delay",
      ["lockDelay"],
      async (s) => {
        const { a, b, resource, stale, opens } = await closed(s);
        await b.keptOut(resource, "a claim within the lock-delay");
        const view = await b.inspect(resource);
        assert.deepEqual(view.holders, [], "the holder is a holder no more");
        assert(
          view.closedMs > 0 && view.closedMs <= s.delayMs + 10,
          `closed for ${view.closedMs} ms`,
        );
        assert.equal(await a.check(resource, stale.token), false);
        const next = await opens();
        assert(next.token > stale.token);
        assert.equal((await b.inspect(resource)).closedMs, 0);
      },
    ),

    law("L17.2", "a released grant leaves no lock-delay", ["lockDelay"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim } = await a!.take(resource, { lockDelayMs: s.delayMs });
      await a!.releaseHeld(claim);
      assert.equal((await b!.inspect(resource)).closedMs, 0);
      await b!.take(resource);
    }),

    law("L17.3", "a late release does not open the resource", ["lockDelay"], async (s) => {
      const { a, stale, staysClosed, opens } = await closed(s);
      expectKind(await a.release(stale.claim), "gone", "a late release");
      await staysClosed("a claim after a late release");
      expectKind(await a.release(stale.claim, 60_000), "gone", "a late release with a tombstone");
      await staysClosed("a claim after a late release with a tombstone");
      await opens();
    }),

    law(
      "L17.4",
      "a late renewal neither revives the grant nor ends or prolongs the lock-delay",
      ["lockDelay"],
      async (s) => {
        const { a, stale, staysClosed, opens } = await closed(s);
        expectKind(await a.renew(stale.claim), "gone", "a late renewal");
        await staysClosed("a claim after a late renewal");
        await opens();
      },
    ),

    law(
      "L17.5",
      "the late holder itself is kept out like everyone else",
      ["lockDelay"],
      async (s) => {
        const { a, resource, stale, opens } = await closed(s);
        await a.refused(resource, {}, "the late holder's new claim");
        assert.notEqual((await a.try(stale.claim)).kind, "granted", "the late holder's old claim");
        await opens();
      },
    ),

    law(
      "L17.6",
      "an expired writer's lock-delay keeps readers out",
      ["lockDelay", "shared"],
      async (s) => {
        const { b, resource, opens } = await closed(s);
        await b.refused(resource, { mode: "shared" }, "a reader within a writer's lock-delay");
        await opens();
      },
    ),

    law(
      "L17.7",
      "an expired reader's lock-delay keeps writers out",
      ["lockDelay", "shared"],
      async (s) => {
        const { staysClosed, opens } = await closed(s, "shared");
        await staysClosed("a writer within a reader's lock-delay");
        await opens();
      },
    ),

    law(
      "L17.8",
      "a waiter is granted after the lock-delay, not before",
      ["lockDelay", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        await a!.take(resource, { ttlMs: s.lifeMs, lockDelayMs: s.delayMs });
        const waiter = await b!.wait(resource);
        await s.expire(resource, s.lifeMs, a!);
        await b!.stillWaits(waiter, "a waiter within the lock-delay");
        const late = await b!.wait(resource);
        await b!.stillWaits(late, "one that came within the lock-delay");
        await s.pass(resource, s.delayMs);
        await b!.untilGranted(waiter);
        await b!.stillWaits(late, "the second in the queue");
      },
    ),

    law("L17.9", "a renewal in time postpones the lock-delay", ["lockDelay", "age"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim } = await a!.take(resource, { ttlMs: s.lifeMs, lockDelayMs: s.delayMs });
      await s.pass(resource, s.lifeMs / 2);
      expectKind(await a!.renew(claim, s.lifeMs), "renewed", "a renewal in time");
      await s.pass(resource, s.lifeMs + 5);
      await b!.refused(resource, {}, "a claim within the lock-delay");
      await s.pass(resource, s.delayMs);
      await b!.take(resource);
    }),

    law(
      "L17.10",
      "a revoked grant leaves its lock-delay if it expires, none if released",
      ["lockDelay"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const [kept, given] = [s.resource("kept"), s.resource("given")];
        const terms = { ttlMs: s.lifeMs, lockDelayMs: s.delayMs };
        const back = await a!.take(given, terms);
        assert.equal(await b!.revoke(given, back.token), "revoked");
        await a!.releaseHeld(back.claim);
        await b!.take(given);
        const lost = await a!.take(kept, terms);
        assert.equal(await b!.revoke(kept, lost.token), "revoked");
        await s.expire(kept, s.lifeMs, a!);
        await b!.refused(kept, {}, "a claim within a revoked grant's lock-delay");
        await s.pass(kept, s.delayMs);
        await b!.take(kept);
      },
    ),

    law("L17.11", "a killed holder's lock-delay is kept", ["lockDelay", "url"], async (s) => {
      const locks = await s.locks();
      const resource = s.resource();
      const options = { ttlMs: s.ttl(500), lockDelayMs: 600 };
      const child = s.child({ resource, options, does: "hold" });
      await child.until("held");
      const killedAt = systemClock.now();
      await child.end();
      const lease = await locks.acquire(resource, { waitMs: 30_000 });
      const tookMs = systemClock.now() - killedAt;
      assert(
        tookMs >= 590,
        `granted ${tookMs.toFixed(0)} ms after a holder with a delay of 600 died`,
      );
      assert(tookMs < options.ttlMs + 600 + 10_000, `granted only after ${tookMs.toFixed(0)} ms`);
      assert.equal(lease.held, true);
    }),

    law(
      "L17.12",
      "a late withdrawal does not open the resource",
      ["lockDelay", "queue"],
      async (s) => {
        // A network may deliver a withdrawal that found the grant again, after the holder's end.
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const first = await a!.take(resource);
        const waiter = await b!.wait(resource, { ttlMs: s.lifeMs, lockDelayMs: s.delayMs });
        await a!.releaseHeld(first.claim);
        expectKind(await b!.withdraw(waiter), "granted", "a withdrawal after the grant");
        await s.expire(resource, s.lifeMs, b!);
        await b!.withdraw(waiter);
        await a!.refused(resource, {}, "a claim after a late withdrawal");
        await s.pass(resource, s.delayMs);
        await a!.take(resource);
      },
    ),

    law(
      "L17.13",
      "a reader's claim repeated within its own lock-delay is answered, and gets no old token",
      ["lockDelay", "shared"],
      async (s) => {
        const { a, resource, stale, opens } = await closed(s, "shared");
        const verbs = a.engine.queue ? (["try", "enqueue"] as const) : (["try"] as const);
        for (const verb of verbs) {
          const again = await a[verb](stale.claim).catch((error: unknown) =>
            assert.fail(`${verb} failed: ${error}`),
          );
          if (again.kind === "granted") {
            assert(again.token > stale.token, "an expired grant came back with its old token");
            await a.releaseHeld(stale.claim);
          } else if (again.kind === "queued") await a.withdraw(stale.claim);
        }
        assert.equal(await a.check(resource, stale.token, "shared"), false);
        await opens();
      },
    ),

    law(
      "L17.14",
      "a claim repeated within its own lock-delay does not break a later release",
      ["lockDelay", "limits", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const terms = { mode: "shared", limit: 2 } as const;
        const late = { ...terms, ttlMs: s.lifeMs, lockDelayMs: s.delayMs };
        const stale = await a!.take(resource, late);
        const other = await b!.take(resource, terms);
        await s.expire(resource, s.lifeMs, a!);
        // The claim may join the queue here, and be granted by the release. Its own session may be
        // over.
        await a!.enqueue(stale.claim).catch(() => {});
        await b!.releaseHeld(other.claim);
      },
    ),
  ],
};
