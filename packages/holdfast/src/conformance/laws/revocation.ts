import assert from "node:assert";
import { expectKind } from "../client.js";
import { law } from "../law.js";

/** What a revocation does at the backend. */
export const revocationLaws = [
  law("L18.6", "revoke forbids renewal and lets the holder finish", [], async (s) => {
    const [a, b] = await s.clients(2);
    for (const mode of s.traits.modes) {
      const resource = s.resource();
      const { claim, token } = await a!.take(resource, { mode });
      assert.equal(await b!.revoke(resource, token), "revoked");
      expectKind(await a!.renew(claim), "gone", "the renewal of a revoked grant");
      assert.equal(await b!.check(resource, token, mode), false, "a revoked grant checks as false");
      const rivals = mode === "shared" ? (["exclusive"] as const) : s.traits.modes;
      await b!.keptOut(resource, "a claim before the revoked holder has finished", rivals);
      const [holder] = (await b!.inspect(resource)).holders;
      assert.equal(holder?.revoked, true, "people see that it is revoked");
      expectKind(await a!.release(claim), "released", "the revoked holder's release");
      await b!.take(resource);
    }
  }),

  law("L18.7", "a revoked grant that is not released ends at its ttl", [], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    const { claim, token } = await a!.take(resource, { ttlMs: s.lifeMs });
    assert.equal(await b!.revoke(resource, token), "revoked");
    expectKind(await a!.renew(claim, s.lifeMs * 10), "gone", "the renewal of a revoked grant");
    await s.expire(resource, s.lifeMs, a!);
    await b!.take(resource);
  }),

  law(
    "L18.8",
    "a waiter follows a revoked holder at its release, not before",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await b!.revoke(resource, token);
      await b!.stillWaits(waiter, "a waiter behind a revoked holder");
      await a!.releaseHeld(claim);
      const live = await b!.untilGranted(waiter);
      assert.equal(await b!.revoke(resource, token), "gone", "the predecessor's token");
      expectKind(await b!.renew(waiter), "renewed", "the successor's renewal");
      assert.equal(await a!.check(resource, live.token), true);
    },
  ),

  law("L18.9", "revoke of a token that nobody holds is gone and harms nobody", [], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    const before = await a!.take(resource);
    await a!.releaseHeld(before.claim);
    const { claim, token } = await a!.take(resource);
    for (const force of [false, true]) {
      assert.equal(await b!.revoke(resource, before.token, force), "gone", "a predecessor's");
      assert.equal(await b!.revoke(resource, token + 1n, force), "gone", "one beyond");
      assert.equal(await b!.revoke(s.resource("other"), token, force), "gone", "elsewhere");
    }
    expectKind(await a!.renew(claim), "renewed", "the holder nobody revoked");
    assert.equal(await b!.check(resource, token), true);
  }),

  law("L18.10", "a forced revocation ends the grant at once", [], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    const { claim, token } = await a!.take(resource);
    assert.equal(await b!.revoke(resource, token, true), "revoked");
    assert.equal(await b!.check(resource, token), false);
    const live = await b!.take(resource);
    expectKind(await a!.renew(claim), "gone", "the former holder's renewal");
    expectKind(await a!.release(claim), "gone", "the former holder's release");
    await a!.holdersAre(resource, live.token);
  }),

  law("L18.11", "a forced revocation lets the next waiter in", ["queue"], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    const { token } = await a!.take(resource);
    const waiter = await b!.wait(resource);
    assert.equal(await b!.revoke(resource, token, true), "revoked");
    const live = await b!.untilGranted(waiter);
    await b!.holdersAre(resource, live.token);
  }),

  law("L18.12", "revoke hits one shared grant and leaves its neighbours", ["shared"], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    const first = await a!.take(resource, { mode: "shared" });
    const second = await b!.take(resource, { mode: "shared" });
    assert.equal(await b!.revoke(resource, first.token), "revoked");
    expectKind(await a!.renew(first.claim), "gone", "the revoked reader");
    expectKind(await b!.renew(second.claim), "renewed", "its neighbour");
    assert.equal(await a!.check(resource, second.token, "shared"), true);
  }),

  law(
    "L18.16",
    "a grant that is revoked before its waiter learns of it is not given out, and a release ends it",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      for (const verb of ["heartbeat", "enqueue", "withdraw"] as const) {
        const resource = s.resource(verb);
        const held = await a!.take(resource);
        const waiter = await b!.wait(resource);
        await a!.releaseHeld(held.claim);
        const [holder] = (await a!.inspect(resource)).holders;
        assert(holder, "the waiter was promoted by the release");
        assert.equal(await a!.revoke(resource, holder.token), "revoked");
        const answer = await b![verb](waiter);
        assert.notEqual(answer.kind, "granted", `${verb} of a revoked grant`);
        assert.equal(await a!.check(resource, holder.token), false);
        await b!.release(waiter);
        await a!.take(resource);
      }
    },
  ),

  law(
    "L18.18",
    "a withdrawal does not end a revoked grant that its holder may be using",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await a!.releaseHeld(first.claim);
      const { token } = expectKind(await b!.withdraw(waiter), "granted", "one that came too late");
      assert.equal(await a!.revoke(resource, token), "revoked");
      // The same withdrawal again, as a network may deliver it.
      await b!.withdraw(waiter);
      await a!.refused(resource, {}, "a claim before the revoked holder has finished");
      expectKind(await b!.release(waiter), "released", "the revoked holder's release");
      await a!.take(resource);
    },
  ),
];
