import assert from "node:assert";
import { LeaseLostError } from "../../errors.js";
import { assertRising, expectKind } from "../client.js";
import { law } from "../stage.js";
import { elapse, gate, within } from "../timing.js";

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
    "L18.13",
    "revoke accepts the token in use, and no other of the range",
    ["range"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, granted } = await a!.take(resource, { tokens: 3 });
      const [first, second, third] = [granted.token, granted.token + 1n, granted.token + 2n];
      const pass = (index: number) => a!.renew(claim, undefined, undefined, { index });
      const revokesNothing = async (token: bigint, what: string) => {
        for (const force of [false, true]) {
          assert.equal(await b!.revoke(resource, token, force), "gone", what);
        }
      };
      await revokesNothing(second, "a token that nobody has yet");
      expectKind(await pass(1), "renewed", "a lease that was handed over");
      await b!.holdersAre(resource, second);
      await revokesNothing(first, "a token that was handed over");
      expectKind(await pass(1), "renewed", "the holder nobody revoked");
      await revokesNothing(third, "a token that nobody has yet");
      assert.equal(await b!.revoke(resource, second), "revoked");
      expectKind(await pass(1), "gone", "the revoked holder");
      expectKind(await pass(0), "gone", "an old renewal of the revoked grant");
      assert.equal(await b!.check(resource, second), false);
    },
  ),

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

  law(
    "L18.16",
    "a grant that is revoked before its waiter learns of it is not given out",
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
      }
    },
  ),

  law(
    "L18.17",
    "through the API, check is true for a lease handed over inside a process",
    ["range"],
    async (s) => {
      const [a, b] = [await s.locks(), await s.locks()];
      const resource = s.resource();
      const tokens: bigint[] = [];
      const visit = async () =>
        a.run(resource, async (lease) => {
          tokens.push(lease.token);
          assert.equal(await b.check(lease.sequencer), true);
          assert.equal(await b.tryAcquire(resource), null);
        });
      await within(30_000, Promise.all([1, 2, 3, 4, 5].map(visit)), "five local waiters");
      assertRising(tokens);
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

  law(
    "L18.20",
    "a revocation does not hit the holder to whom the lease was handed over before it",
    ["range"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, granted } = await a!.take(resource, { tokens: 3 });
      // The lease was handed over, and the backend does not know it yet.
      assert.equal(await b!.revoke(resource, granted.token), "revoked");
      const renewed = await a!.renew(claim, undefined, undefined, { index: 1 });
      expectKind(renewed, "renewed", "the successor inside the process");
      assert.equal(await b!.check(resource, granted.token + 1n), true);
      const [holder] = (await b!.inspect(resource)).holders;
      assert.deepEqual([holder?.token, holder?.revoked], [granted.token + 1n, false]);
      const late = await a!.renew(claim, undefined, undefined, { index: 0 });
      expectKind(late, "renewed", "a renewal that knows of no hand-over changes none");
      await b!.holdersAre(resource, granted.token + 1n);
    },
  ),

  law(
    "L18.21",
    "through the API, revoking a former holder leaves its successor in the process alone",
    ["range"],
    async (s) => {
      const [ours, theirs] = [await s.locks(), await s.locks()];
      const resource = s.resource();
      const ttlMs = s.ttl(12_000);
      const a = await ours.acquire(resource, { ttlMs });
      const waiting = [ours.acquire(resource, { ttlMs }), ours.acquire(resource, { ttlMs })];
      await a.release();
      const b = await waiting[0]!;
      await b.release();
      const c = await waiting[1]!;
      for (const token of [a.token, b.token]) await theirs.revoke(resource, { token });
      await assert.doesNotReject(c.renew(), "the successor was not revoked");
      await elapse(50);
      assert.equal(c.held, true, "the successor was not revoked");
      const [holder] = (await theirs.inspect(resource)).holders;
      assert.equal(holder?.token, c.token, "people see who holds it now");
      assert.equal(await theirs.revoke(resource, { token: c.token }), "revoked");
      await assert.rejects(within(8_000, c.renew(), "renew"), LeaseLostError);
    },
  ),

  law(
    "L18.22",
    "through the API, a revocation answered to the former holder's renewal leaves its successor alone",
    ["range"],
    async (s) => {
      const { locks, flaky } = await s.flakyLocks({ cohort: { ms: 60_000 } });
      const other = await s.locks();
      const resource = s.resource();
      const ttlMs = s.ttl(12_000);
      const first = await locks.acquire(resource, { ttlMs });
      const [turn, waiting] = [1, 2].map(() => locks.acquire(resource, { ttlMs }));
      await first.release();
      // The claim is granted while another one waits behind it, so it reserves a token for that one
      // too.
      const former = await turn!;
      const request = gate();
      flaky.inject("renew", { kind: "hold-request", until: request.opened });
      const renewing = former.renew().catch(() => {});
      await elapse(30);
      await former.release();
      const successor = await within(8_000, waiting!, "the successor's turn");
      assert.equal(await other.revoke(resource, { token: former.token }), "revoked");
      request.open();
      await renewing;
      await elapse(50);
      assert.equal(successor.held, true, `the successor was lost: ${successor.signal.reason}`);
      await assert.doesNotReject(successor.renew(), "the successor was not revoked");
    },
  ),
];
