import assert from "node:assert";
import { LeaseLostError } from "../../errors.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { elapse, within } from "../patience.js";
import { law } from "../stage.js";

export const checkAndRevoke: LawGroup = {
  id: "L18",
  name: "check and revoke",
  text:
    "Check says whether a live, unrevoked grant of this mode holds this token now. Revoke forbids " +
    "the renewal of exactly one grant and tells its holder; the successor follows at release or " +
    "expiry, or at once with force.",
  laws: [
    law("L18.1", "check is true for a live grant, and false for anything else", [], async (s) => {
      const [a, b] = await s.clients(2);
      const [resource, other] = [s.resource(), s.resource("other")];
      const { claim, token } = await a!.take(resource);
      assert.equal(await b!.check(resource, token), true, "a live grant");
      assert.equal(await b!.check(resource, token + 1n), false, "a token beyond it");
      assert.equal(await b!.check(resource, token - 1n), false, "a token before it");
      assert.equal(await b!.check(other, token), false, "another resource");
      assert.equal(await b!.check(resource, token, "shared"), false, "another mode");
      await a!.giveBack(claim);
      assert.equal(await b!.check(resource, token), false, "a released grant");
      const next = await b!.take(resource);
      assert.equal(await a!.check(resource, token), false, "a predecessor's token");
      assert.equal(await a!.check(resource, next.token), true, "the successor's token");
    }),

    law("L18.2", "check is false for an expired grant", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { token } = await a!.take(resource, { ttlMs: s.lifeMs });
      assert.equal(await b!.check(resource, token), true);
      await s.expire(resource, s.lifeMs, a!);
      assert.equal(await b!.check(resource, token), false);
    }),

    law(
      "L18.3",
      "check is true for each token of the range, and for none beyond",
      ["range"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const { granted } = await a!.take(resource, { tokens: Math.min(8, s.traits.tokenRange) });
        const last = granted.token + BigInt(granted.tokens - 1);
        for (let token = granted.token; token <= last; token++) {
          assert.equal(await b!.check(resource, token), true, `token ${token} of the range`);
        }
        assert.equal(await b!.check(resource, granted.token - 1n), false, "one before the range");
        assert.equal(await b!.check(resource, last + 1n), false, "one beyond the range");
      },
    ),

    law("L18.4", "check tells shared grants apart", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource, { mode: "shared" });
      const second = await b!.take(resource, { mode: "shared" });
      await a!.giveBack(first.claim);
      assert.equal(await a!.check(resource, first.token, "shared"), false);
      assert.equal(await a!.check(resource, second.token, "shared"), true);
      assert.equal(await a!.check(resource, second.token, "exclusive"), false);
    }),

    law("L18.5", "check is false for a waiter until it is granted", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await a!.giveBack(held.claim);
      const { token } = await b!.turn(waiter);
      assert.equal(await a!.check(resource, held.token), false);
      assert.equal(await a!.check(resource, token), true);
    }),

    law("L18.6", "revoke forbids renewal and lets the holder finish", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      assert.equal(await b!.revoke(resource, token), "revoked");
      expectKind(await a!.renew(claim), "gone", "the renewal of a revoked grant");
      assert.equal(await b!.check(resource, token), false, "a revoked grant checks as false");
      await b!.refused(resource, {}, "a claim before the revoked holder has finished");
      const [holder] = (await b!.inspect(resource)).holders;
      assert.equal(holder?.revoked, true, "people see that it is revoked");
      expectKind(await a!.release(claim), "released", "the revoked holder's release");
      await b!.take(resource);
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
        await a!.giveBack(claim);
        const live = await b!.turn(waiter);
        assert.equal(await b!.revoke(resource, token), "gone", "the predecessor's token");
        expectKind(await b!.renew(waiter), "renewed", "the successor's renewal");
        assert.equal(await a!.check(resource, live.token), true);
      },
    ),

    law("L18.9", "revoke of a token that nobody holds is gone and harms nobody", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const before = await a!.take(resource);
      await a!.giveBack(before.claim);
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
      const live = await b!.turn(waiter);
      await b!.holdersAre(resource, live.token);
    }),

    law(
      "L18.12",
      "revoke hits one shared grant and leaves its neighbours",
      ["shared"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const first = await a!.take(resource, { mode: "shared" });
        const second = await b!.take(resource, { mode: "shared" });
        assert.equal(await b!.revoke(resource, first.token), "revoked");
        expectKind(await a!.renew(first.claim), "gone", "the revoked reader");
        expectKind(await b!.renew(second.claim), "renewed", "its neighbour");
        assert.equal(await a!.check(resource, second.token, "shared"), true);
      },
    ),

    law("L18.13", "revoke by any token of the range revokes the grant", ["range"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, granted } = await a!.take(resource, { tokens: 2 });
      assert.equal(await b!.revoke(resource, granted.token + 1n), "revoked");
      assert.equal(await b!.check(resource, granted.token), false);
      expectKind(await a!.renew(claim), "gone", "the revoked grant");
    }),

    law(
      "L18.14",
      "through the API, a revoked holder is told and its release lets the next in",
      [],
      async (s) => {
        for (const fair of ["cohort", "strict"] as const) {
          const [a, b] = [await s.locks(), await s.locks()];
          const resource = s.resource(fair);
          const ttlMs = s.ttl(1_500);
          const lease = await a.acquire(resource, { ttlMs, fair });
          const lost = new Promise<void>((go) => {
            lease.signal.addEventListener("abort", () => go(), { once: true });
          });
          assert.equal(await b.revoke(resource, { token: lease.token }), "revoked");
          assert.equal(await b.check(lease.sequencer), false);
          await within(ttlMs, lost, "the revoked holder's signal");
          const { reason } = lease.signal;
          assert(reason instanceof LeaseLostError);
          assert.equal(reason.reason, "revoked");
          assert.equal(lease.held, false);
          await elapse(10);
          assert.equal(await b.tryAcquire(resource), null, "the holder has not finished yet");
          const next = b.acquire(resource, { waitMs: 5_000 });
          assert.equal(await lease.release(), "gone");
          const successor = await within(ttlMs / 2 + 500, next, "the successor");
          assert(successor.token > lease.token);
        }
      },
    ),
  ],
};
