import assert from "node:assert";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse } from "../timing.js";

/** Client a held the resource until it expired, and client b holds it now. */
async function succeeded(s: LawContext) {
  const [a, b, c] = await s.clients(3);
  const resource = s.resource();
  const stale = await a!.take(resource, { ttlMs: s.lifeMs });
  await s.expire(resource, s.lifeMs, a!);
  const live = await b!.take(resource);
  const unharmed = async () => {
    assert.equal(await c!.check(resource, live.token), true, "the successor's grant lives");
    await c!.refused(resource, {}, "a third claim while the successor holds");
    expectKind(await b!.renew(live.claim), "renewed", "the successor's renewal");
  };
  return { a: a!, b: b!, c: c!, resource, stale, live, unharmed };
}

export const succession: LawGroup = {
  id: "L3",
  name: "ownership across succession",
  text:
    "A holder may change its own grant only. Once its grant is over, nothing that it " +
    "sends affects the grant of its successor.",
  laws: [
    law("L3.1", "a holder whose grant expired cannot release its successor's", [], async (s) => {
      const { a, stale, unharmed } = await succeeded(s);
      expectKind(await a.release(stale.claim), "gone", "the release of an expired grant");
      await unharmed();
      expectKind(await a.release(stale.claim, 60_000), "gone", "the same with a tombstone");
      await unharmed();
    }),

    law("L3.2", "a holder whose grant expired cannot renew its successor's", [], async (s) => {
      const { a, stale, unharmed } = await succeeded(s);
      expectKind(await a.renew(stale.claim), "gone", "the renewal of an expired grant");
      await unharmed();
    }),

    law("L3.3", "a holder whose grant expired cannot acquire over its successor", [], async (s) => {
      const { a, c, resource, stale, live, unharmed } = await succeeded(s);
      const again = await a.try(stale.claim);
      assert.notEqual(again.kind, "granted", "a repeated acquire after a succession");
      await unharmed();
      await c.holdersAre(resource, live.token);
    }),

    law("L3.4", "an expired permit's release frees nobody else's permit", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const terms = { mode: "shared", limit: 1 } as const;
      const stale = await a!.take(resource, { ...terms, ttlMs: s.lifeMs });
      await s.expire(resource, s.lifeMs, a!);
      const live = await b!.take(resource, terms);
      expectKind(await a!.release(stale.claim), "gone", "the release of an expired permit");
      expectKind(await a!.renew(stale.claim), "gone", "the renewal of an expired permit");
      await a!.refused(resource, terms);
      await a!.holdersAre(resource, live.token);
    }),

    law("L3.5", "a foreign grantId or a foreign resource ends nothing", [], async (s) => {
      const [a, b] = await s.clients(2);
      const [one, other] = [s.resource("one"), s.resource("other")];
      const held = await a!.take(one);
      const elsewhere = await b!.take(other);
      const crossed = { resource: one, grantId: elsewhere.claim.grantId };
      expectKind(await b!.release(crossed), "gone", "another resource's grantId");
      expectKind(await b!.renew(crossed), "gone", "another resource's grantId");
      expectKind(await b!.release(b!.claim(one)), "gone", "a grantId that nobody has");
      await b!.refused(one);
      await a!.refused(other);
      assert.equal(await b!.check(one, held.token), true);
      assert.equal(await a!.check(other, elsewhere.token), true);
    }),

    law(
      "L3.6",
      "a late release or withdrawal does not affect the waiter that was granted in between",
      ["queue"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const stale = await a!.take(resource, { ttlMs: s.lifeMs });
        const waiter = await b!.wait(resource);
        await s.expire(resource, s.lifeMs, a!);
        const live = await b!.untilGranted(waiter);
        expectKind(await a!.release(stale.claim), "gone", "the release of an expired grant");
        expectKind(await a!.withdraw(stale.claim), "withdrawn", "the withdrawal of nothing");
        await c!.refused(resource);
        assert.equal(await c!.check(resource, live.token), true);
      },
    ),

    law(
      "L3.7",
      "a late release before anybody noticed the expiry does not skip the queue",
      ["queue"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const stale = await a!.take(resource, { ttlMs: s.lifeMs });
        const first = await b!.wait(resource);
        const second = await c!.wait(resource);
        await s.expire(resource, s.lifeMs, a!);
        expectKind(await a!.release(stale.claim), "gone", "the release of an expired grant");
        const live = await b!.untilGranted(first);
        await c!.stillWaits(second, "the second in the queue");
        await c!.holdersAre(resource, live.token);
      },
    ),

    law(
      "L3.8",
      "through the API, a lease that expired unnoticed is gone at release and harms nobody",
      ["age"],
      async (s) => {
        const [a, b] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const stale = await a.acquire(resource, { ttlMs: s.lifeMs, renew: false });
        await s.pass(resource, s.lifeMs);
        const live = await b.acquire(resource, { waitMs: 20_000 });
        assert.equal(await stale.release(), "gone");
        assert.equal(await a.tryAcquire(resource), null);
        assert.equal(await a.check(live.sequencer), true);
        assert.equal(await a.check(stale.sequencer), false);
        assert.equal(await live.release(), "released");
      },
    ),

    law(
      "L3.9",
      "a process stopped past its ttl sees the loss at its first statement, and harms nobody",
      ["url"],
      async (s) => {
        const resource = s.resource();
        const ttlMs = s.ttl(400);
        const child = s.child({ resource, options: { ttlMs }, does: "watch" });
        const { token } = await child.until("held");
        // Longer than its ttl, so that it lives by renewals when it is stopped.
        await elapse(ttlMs * 1.2);
        child.signal("SIGSTOP");
        const locks = await s.locks();
        const lease = await locks.acquire(resource, { waitMs: ttlMs * 2 + 20_000 });
        await elapse(ttlMs * 1.2);
        child.signal("SIGCONT");
        const paused = await child.until("paused");
        assert.deepEqual(
          { held: paused.held, thrown: paused.thrown, released: paused.released },
          { held: false, thrown: "LeaseLostError", released: "gone" },
        );
        assert.equal(paused.aborted, true, "lease.signal is aborted once the loss is noticed");
        assert(lease.token > BigInt(token));
        assert.equal(lease.held, true);
        assert.equal(await locks.check(lease.sequencer), true);
        assert.equal(await lease.release(), "released");
      },
    ),
  ],
};
