import assert from "node:assert";
import { LeaseLostError } from "../../errors.js";
import { law } from "../law.js";
import { elapse, gate, within } from "../timing.js";

/** How the holder of a revoked lease learns of it, through the API. */
export const toldHolderLaws = [
  law(
    "L18.14",
    "through the API, a revoked holder is told and its release lets the next in",
    [],
    async (s) => {
      for (const fair of ["cohort", "strict"] as const) {
        const [a, b] = [await s.locks(), await s.locks()];
        const resource = s.resource(fair);
        const ttlMs = s.ttl(6_000);
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
        const next = b.acquire(resource, { waitMs: 20_000 });
        assert.equal(await lease.release(), "gone");
        const successor = await within(ttlMs / 2 + 500, next, "the successor");
        assert(successor.token > lease.token);
      }
    },
  ),

  law(
    "L18.15",
    "a holder is told of its revocation long before its next renewal",
    ["watch"],
    async (s) => {
      // The holder never waited, its ttl is long, and another client revokes.
      const [a, b] = [await s.locks(), await s.locks()];
      for (const force of [false, true]) {
        const resource = s.resource(force ? "forced" : "asked");
        const lease = await a.acquire(resource, { ttlMs: s.ttl(60_000) });
        const lost = new Promise<void>((go) => {
          lease.signal.addEventListener("abort", () => go(), { once: true });
        });
        assert.equal(await b.revoke(resource, { token: lease.token, force }), "revoked");
        await within(8_000, lost, "the revoked holder's signal");
        const { reason } = lease.signal.reason as LeaseLostError;
        // After a forced revocation the grant is gone, and somebody else may have the resource.
        assert.match(reason, force ? /^(expired|replaced|revoked)$/ : /^revoked$/);
      }
    },
  ),

  law("L18.19", "a revocation during a renewal is not missed", ["watch"], async (s) => {
    const { locks, flaky } = await s.flakyLocks();
    const other = await s.locks();
    const resource = s.resource();
    const lease = await locks.acquire(resource, { ttlMs: s.ttl(60_000) });
    const lost = new Promise<void>((go) => {
      lease.signal.addEventListener("abort", () => go(), { once: true });
    });
    const answer = gate();
    flaky.inject("renew", { kind: "hold-reply", until: answer.opened });
    const renewing = lease.renew();
    renewing.catch(() => {});
    await elapse(30);
    assert.equal(await other.revoke(resource, { token: lease.token }), "revoked");
    await elapse(100);
    answer.open();
    await within(8_000, lost, "the revoked holder's signal");
  }),
];
