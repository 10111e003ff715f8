import assert from "node:assert";
import type { Gone } from "../../engine.js";
import { LeaseLostError } from "../../errors.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse, within } from "../timing.js";

function because(gone: Gone, ...reasons: Gone["why"][]): void {
  assert(reasons.includes(gone.why), `gone because "${gone.why}", not ${reasons.join(" or ")}`);
}

export const renewal: LawGroup = {
  id: "L5",
  name: "renewal never revives",
  text:
    "Only a live, unrevoked grant is renewed. A grant that is expired, replaced, revoked, released or " +
    "was never made is gone, and stays so.",
  laws: [
    law("L5.1", "an expired grant is not revived, even if nobody replaced it", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource, { ttlMs: s.lifeMs });
      await s.expire(resource, s.lifeMs, a!);
      because(expectKind(await a!.renew(claim), "gone", "an expired grant"), "expired", "unknown");
      assert.equal(await a!.check(resource, token), false);
      await b!.take(resource);
      await a!.holdersAre(resource, ...(await b!.inspect(resource)).holders.map((h) => h.token));
    }),

    law("L5.2", "a replaced grant is gone for its former holder", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim } = await a!.take(resource, { ttlMs: s.lifeMs });
      await s.expire(resource, s.lifeMs, a!);
      const live = await b!.take(resource);
      const gone = expectKind(await a!.renew(claim), "gone", "a replaced grant");
      because(gone, "replaced", "expired", "unknown");
      await a!.holdersAre(resource, live.token);
    }),

    law("L5.3", "a revoked grant is gone for that reason", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      assert.equal(await b!.revoke(resource, token), "revoked");
      because(expectKind(await a!.renew(claim), "gone", "a revoked grant"), "revoked");
      because(expectKind(await a!.renew(claim), "gone", "a revoked grant, again"), "revoked");
    }),

    law("L5.4", "a released grant and an unknown one are gone", [], async (s) => {
      const a = await s.client();
      const resource = s.resource();
      const { claim } = await a.take(resource);
      await a.releaseHeld(claim);
      expectKind(await a.renew(claim), "gone", "a released grant");
      expectKind(await a.renew(a.claim(resource)), "gone", "a grant that never was");
      await a.holdersAre(resource);
    }),

    law("L5.5", "a waiter has nothing to renew, and keeps its place", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      await a!.take(resource);
      const waiter = await b!.wait(resource);
      expectKind(await b!.renew(waiter), "gone", "the renewal of a waiter");
      await b!.stillWaits(waiter, "a waiter that tried to renew");
    }),

    law("L5.6", "a batch is answered grant by grant, in the order asked", [], async (s) => {
      const a = await s.client();
      const live = [await a.take(s.resource("x")), await a.take(s.resource("y"))];
      const over = await a.take(s.resource("z"));
      await a.releaseHeld(over.claim);
      const ttls = [s.ttl(11_000), s.ttl(12_000), s.ttl(13_000)];
      const refs = [live[0]!, over, live[1]!].map(({ claim: { resource, grantId } }, i) => ({
        resource,
        grantId,
        ttlMs: ttls[i]!,
      }));
      const answers = await a.engine.renew(refs, a.call());
      assert.deepEqual(
        answers.map((answer) => answer.kind),
        ["renewed", "gone", "renewed"],
      );
      if (s.traits.expiry === "ttl") {
        for (const i of [0, 2]) {
          const answer = expectKind(answers[i]!, "renewed", "a live grant");
          assert.equal(answer.ttlMs, ttls[i], "each grant is renewed for its own ttl");
        }
      }
      const backwards = await a.engine.renew(refs.toReversed().slice(1), a.call());
      assert.deepEqual(
        backwards.map((answer) => answer.kind),
        ["gone", "renewed"],
      );
      assert.deepEqual(await a.engine.renew([], a.call()), []);
    }),

    law(
      "L5.7",
      "an acquire repeated after its grant expired does not get the old token",
      [],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const { claim, token } = await a!.take(resource, { ttlMs: s.lifeMs });
        await s.expire(resource, s.lifeMs, a!);
        const between = await b!.take(resource);
        await b!.releaseHeld(between.claim);
        const again = await a!.try(claim);
        if (again.kind === "granted") {
          assert(again.token > between.token, "an expired grant came back with its old token");
        }
        assert.equal(await a!.check(resource, token), false);
      },
    ),

    law("L5.8", "through the API, a lease outlives its ttl while it is renewed", [], async (s) => {
      const [a, b] = [await s.locks(), await s.locks()];
      // A busy machine takes a short lease from anybody; where nobody renews, every one is lost.
      for (const wantedMs of [600, 2_500, 8_000]) {
        const resource = s.resource();
        const ttlMs = s.ttl(wantedMs);
        const lease = await a.acquire(resource, { ttlMs });
        for (let i = 0; i < 3 && lease.held; i++) {
          await elapse(ttlMs * 0.5);
          const other = await b.tryAcquire(resource);
          assert(other === null || !lease.held, "two hold it");
          await other?.release();
        }
        const isGood = await b.check(lease.sequencer);
        if (!lease.held) continue;
        assert.equal(isGood, true);
        assert.equal(await lease.release(), "released");
        await elapse(ttlMs * 0.5);
        assert.deepEqual((await b.inspect(resource)).holders, [], "no renewal outlives a release");
        return;
      }
      assert.fail("the keeper renews in time");
    }),

    law(
      "L5.9",
      "through the API, a renewal that finds its grant gone loses the lease",
      ["age"],
      async (s) => {
        const a = await s.locks();
        const resource = s.resource();
        const lease = await a.acquire(resource, { ttlMs: s.lifeMs });
        const { signal } = lease;
        await s.pass(resource, s.lifeMs);
        await assert.rejects(within(8_000, lease.renew(), "renew"), LeaseLostError);
        assert.equal(lease.held, false);
        assert(signal.aborted && signal.reason instanceof LeaseLostError);
        assert.equal(await lease.release(), "gone");
      },
    ),

    law(
      "L5.10",
      "through the API, a lease that is revoked by force is lost at its next renewal",
      [],
      async (s) => {
        const [a, b] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const lease = await a.acquire(resource, { ttlMs: s.ttl(30_000) });
        assert.equal(await b.revoke(resource, { token: lease.token, force: true }), "revoked");
        const live = await b.acquire(resource, { waitMs: 20_000 });
        await assert.rejects(within(8_000, lease.renew(), "renew"), LeaseLostError);
        assert.equal(lease.held, false);
        assert.equal(await lease.release(), "gone");
        assert.equal(await b.check(live.sequencer), true, "the successor is not touched");
      },
    ),

    law(
      "L5.11",
      "through the API, a short loss of connection neither ends nor extends a lease",
      ["sever"],
      async (s) => {
        const { engine, locks } = await s.severable();
        const other = await s.client();
        let said = "";
        // A busy machine takes a short lease from anybody; an engine that gives up too early loses every one.
        for (const wantedMs of [2_000, 8_000]) {
          const resource = s.resource();
          const ttlMs = s.ttl(wantedMs);
          const lease = await locks.acquire(resource, { ttlMs, callTimeoutMs: ttlMs / 4 });
          const heal = await s.harness.sever!(engine);
          await elapse(ttlMs * 0.4);
          const heldInCut = lease.held;
          await heal();
          await elapse(ttlMs * 0.8);
          said = heldInCut
            ? "renewals go on once the connection is back"
            : "one renewal that failed is not a loss";
          if (!lease.held) continue;
          await other.refused(resource);
          assert.equal(await lease.release(), "released");
          return;
        }
        assert.fail(said);
      },
      60_000,
    ),

    law(
      "L5.12",
      "through the API, a long loss of connection loses the lease before anybody else is let in",
      ["sever"],
      async (s) => {
        const { engine, locks } = await s.severable();
        const other = await s.client();
        const resource = s.resource();
        const ttlMs = s.ttl(500);
        const lease = await locks.acquire(resource, { ttlMs, callTimeoutMs: 2_000 });
        const { signal } = lease;
        const heal = await s.harness.sever!(engine);
        const claim = other.claim(resource);
        for (let tries = 0; (await other.try(claim)).kind !== "granted"; tries++) {
          assert(tries < 1_000, "the lease of a client that was cut off must end");
          await elapse(5);
        }
        assert.equal(lease.held, false, "held while another client was granted the resource");
        assert(signal.reason instanceof LeaseLostError);
        await heal();
        assert.equal(await lease.release(), "gone");
        await elapse(50);
        expectKind(await other.renew(claim), "renewed", "the successor, after the late release");
      },
    ),

    law("L5.13", "a late copy of a shorter renewal does not undo a later one", [], async (s) => {
      const [a, b] = await s.clients(2);
      for (const { terms, index } of s.variants) {
        const resource = s.resource();
        const { claim } = await a!.take(resource, { ...terms, ttlMs: s.ttl(20_000) });
        const [early, late] = [a!.call(), a!.call()];
        const answer = await a!.renew(claim, s.ttl(60_000), late, { index });
        const given = expectKind(answer, "renewed", "a living one");
        await a!.renew(claim, s.ttl(5_000), early, { index });
        const [holder] = (await b!.inspect(resource)).holders;
        // A minute, or the maximum of a session that was opened with twenty seconds.
        const wantedMs = given.ttlMs / 2;
        assert((holder?.remainingMs ?? 0) > wantedMs, `the later renewal gave ${given.ttlMs} ms`);
        const after = await a!.renew(claim, s.ttl(60_000), a!.call(), { index });
        expectKind(after, "renewed", "the grant, after all");
      }
    }),

    law("L5.14", "a late copy of a longer renewal extends nothing", ["ttl"], async (s) => {
      const [a, b] = await s.clients(2);
      for (const { terms, index } of s.variants) {
        const resource = s.resource();
        const { claim } = await a!.take(resource, { ...terms, ttlMs: s.ttl(20_000) });
        const [early, late] = [a!.call(), a!.call()];
        const given = await a!.renew(claim, s.ttl(5_000), late, { index });
        expectKind(given, "renewed", "a living grant");
        await a!.renew(claim, s.ttl(60_000), early, { index });
        const [holder] = (await b!.inspect(resource)).holders;
        assert((holder?.remainingMs ?? 0) < 20_000, "the later renewal wanted five seconds");
      }
    }),

    law(
      "L5.15",
      "a late copy of a shorter renewal does not undo a later one with the same ttl",
      [],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (const { terms, index } of s.variants) {
          const resource = s.resource();
          const { claim } = await a!.take(resource, { ...terms, ttlMs: s.ttl(20_000) });
          const [early, late] = [a!.call(), a!.call()];
          const given = await a!.renew(claim, s.ttl(20_000), late, { index });
          expectKind(given, "renewed", "a living grant");
          await a!.renew(claim, s.ttl(5_000), early, { index });
          const [holder] = (await b!.inspect(resource)).holders;
          assert((holder?.remainingMs ?? 0) > 10_000, "the later renewal gave twenty seconds");
        }
      },
    ),

    law("L5.16", "a late copy of a batch undoes no later renewal of its grants", [], async (s) => {
      const [a, b] = await s.clients(2);
      const batch = await s.batch(a!, s.ttl(20_000));
      const [early, late] = [a!.call(), a!.call()];
      const given = await a!.renewAll(batch, (i) => 60_000 + i * 1_000, late);
      await a!.renewAll(batch, () => 5_000, early);
      for (const [i, { claim }] of batch.entries()) {
        const [holder] = (await b!.inspect(claim.resource)).holders;
        const { ttlMs } = given[i]!;
        assert((holder?.remainingMs ?? 0) > ttlMs / 2, `grant ${i} had been given ${ttlMs} ms`);
      }
    }),
  ],
};
