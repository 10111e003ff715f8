import assert from "node:assert";
import { LeaseLostError } from "../../errors.js";
import { assertRising, expectKind } from "../client.js";
import { law } from "../law.js";
import { elapse, gate, within } from "../timing.js";

/** What check and revoke mean for a lease that is handed over inside a process. */
export const handedOverLaws = [
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
