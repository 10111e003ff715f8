import assert from "node:assert";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";

export const release: LawGroup = {
  id: "L8",
  name: "releasing again",
  text:
    "A release ends the grant, or the wait, of exactly its grantId. A repeated release is answered " +
    "with gone and changes nothing.",
  laws: [
    law("L8.1", "a second release is gone and frees nobody else's grant", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      await a!.releaseHeld(first.claim);
      expectKind(await a!.release(first.claim), "gone", "a second release");
      const next = await b!.take(resource);
      expectKind(await a!.release(first.claim), "gone", "a third release");
      await a!.holdersAre(resource, next.token);
    }),

    law("L8.2", "releases of the same grant at the same instant end it once", [], async (s) => {
      const a = await s.client();
      const resource = s.resource();
      const { claim } = await a.take(resource);
      const answers = await Promise.all([1, 2, 3].map(() => a.release(claim)));
      const released = answers.filter((answer) => answer.kind === "released");
      assert.equal(released.length, 1);
      assert(answers.every((answer) => answer.kind !== "failed"));
    }),

    law("L8.3", "the release of an unknown grantId is gone", [], async (s) => {
      const a = await s.client();
      const claim = a.claim(s.resource());
      expectKind(await a.release(claim), "gone", "the release of nothing");
      await a.take(claim.resource);
    }),

    law("L8.4", "the release of a waiter takes it out of the queue", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      const held = await a!.take(resource);
      const first = await b!.wait(resource, { label: "first" });
      const second = await c!.wait(resource, { label: "second" });
      expectKind(await b!.release(first), "released", "the release of a waiter");
      expectKind(await b!.release(first), "gone", "its repetition");
      expectKind(await b!.heartbeat(first), "unknown", "the heartbeat of one that left");
      const { waiters } = await a!.inspect(resource);
      assert.deepEqual(
        waiters.map((waiter) => waiter.label),
        ["second"],
      );
      await a!.holdersAre(resource, held.token);
      await a!.releaseHeld(held.claim);
      await c!.untilGranted(second);
    }),

    law("L8.5", "a batch is answered grant by grant, in the order asked", [], async (s) => {
      const a = await s.client();
      const [x, y] = [await a.take(s.resource("x")), await a.take(s.resource("y"))];
      const kept = await a.take(s.resource("kept"));
      const never = a.claim(s.resource("never"));
      const refs = [never, x.claim, never, y.claim, x.claim].map(({ resource, grantId }) => ({
        resource,
        grantId,
        tombstoneMs: 0,
      }));
      const answers = await a.engine.release(refs, a.call());
      assert.deepEqual(
        answers.map((answer) => answer.kind),
        ["gone", "released", "gone", "released", "gone"],
      );
      assert.deepEqual(await a.engine.release([], a.call()), []);
      await a.holdersAre(kept.claim.resource, kept.token);
    }),

    law("L8.6", "the release of one shared grant leaves the others", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource, { mode: "shared" });
      const second = await b!.take(resource, { mode: "shared" });
      await a!.releaseHeld(first.claim);
      await a!.holdersAre(resource, second.token);
      expectKind(await b!.renew(second.claim), "renewed", "the other reader");
    }),

    law(
      "L8.7",
      "through the API, a lease is released once, even if release() is called again",
      [],
      async (s) => {
        const [a, b] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const lease = await a.acquire(resource);
        const answers = await Promise.all([lease.release(), lease.release()]);
        assert.deepEqual(answers, ["released", "released"]);
        const next = await b.acquire(resource);
        assert.equal(await lease.release(), "released", "the first answer is remembered");
        await lease[Symbol.asyncDispose]();
        assert.equal(next.held, true);
        assert.equal(await a.tryAcquire(resource), null);
      },
    ),
  ],
};
