import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse } from "../timing.js";

/**
 * One missed heartbeat is tolerated, two in a row are not: engines forget a silent waiter after 10
 * s.
 */
const QUIET_MS = 8_000;

export const repeat: LawGroup = {
  id: "L7",
  name: "repeating a claim",
  text:
    "A claim sent again with the same grantId, because its answer was lost or a client resent it, " +
    "makes no second grant and no second waiter. It gets the same token, or keeps its place as a " +
    "heartbeat would, and is granted if its turn has come.",
  laws: [
    law("L7.1", "a repeated acquire gets the same token and stays one grant", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      for (let i = 0; i < 3; i++) {
        const again = expectKind(await a!.try(claim), "granted", "the same grantId");
        assert.equal(again.token, token);
      }
      await b!.holdersAre(resource, token);
      await a!.releaseHeld(claim);
      assert((await b!.take(resource)).token > token, "one release ends it");
    }),

    law("L7.2", "an acquire repeated over a new connection gets the same grant", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      if (s.traits.expiry === "session") return;
      assert.equal(expectKind(await b!.try(claim), "granted", "the same grantId").token, token);
      await b!.holdersAre(resource, token);
      expectKind(await b!.release(claim), "released", "the release over the new connection");
      await s.untilEmpty(a!, resource);
    }),

    law("L7.3", "a repeated shared acquire counts once", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const terms = { mode: "shared", limit: 2 } as const;
      const { claim, token } = await a!.take(resource, terms);
      assert.equal(expectKind(await a!.try(claim), "granted", "the same grantId").token, token);
      const other = await b!.take(resource, terms);
      assert.equal(expectKind(await a!.try(claim), "granted", "at the limit").token, token);
      await b!.holdersAre(resource, token, other.token);
      await b!.refused(resource, terms);
    }),

    law("L7.4", "a repeated acquire gets the same range", ["range"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, granted } = await a!.take(resource, { tokens: s.traits.tokenRange });
      const again = expectKind(await a!.try(claim), "granted", "the same grantId");
      assert.deepEqual([again.token, again.tokens], [granted.token, granted.tokens]);
      await a!.releaseHeld(claim);
      assert((await b!.take(resource)).token >= granted.token + BigInt(granted.tokens));
    }),

    law("L7.5", "an enqueue repeated by a waiter keeps its one place", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      const held = await a!.take(resource);
      const first = await b!.wait(resource, { label: "first" });
      const second = await c!.wait(resource, { label: "second" });
      for (let i = 0; i < 2; i++) {
        const again = expectKind(
          await b!.enqueue(first),
          "queued",
          "the same grantId in the queue",
        );
        assert.equal(again.position, 0, "the head stays the head");
        const behind = expectKind(
          await c!.enqueue(second),
          "queued",
          "the same grantId in the queue",
        );
        assert.equal(behind.position, 1);
      }
      const labels = (await a!.inspect(resource)).waiters.map((waiter) => waiter.label);
      assert.deepEqual(labels, ["first", "second"]);
      await a!.releaseHeld(held.claim);
      await b!.untilGranted(first);
      await b!.releaseHeld(first);
      await c!.untilGranted(second);
    }),

    law("L7.6", "an enqueue repeated after its grant gets the same token", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      const behind = await c!.wait(resource);
      await a!.releaseHeld(held.claim);
      const { token } = await b!.untilGranted(waiter);
      for (const answer of [
        await b!.enqueue(waiter),
        await b!.try(waiter),
        await b!.heartbeat(waiter),
      ]) {
        assert.equal(expectKind(answer, "granted", "the same grantId").token, token);
      }
      await b!.holdersAre(resource, token);
      await c!.stillWaits(behind, "the next in the queue");
      assert.equal((await c!.inspect(resource)).waiters.length, 1);
    }),

    law(
      "L7.7",
      "an enqueue that was granted at once is repeated as one grant",
      ["queue"],
      async (s) => {
        const a = await s.client();
        const claim = a.claim(s.resource());
        const { token } = expectKind(await a.enqueue(claim), "granted", "a free resource");
        for (const answer of [await a.enqueue(claim), await a.try(claim)]) {
          assert.equal(expectKind(answer, "granted", "the same grantId").token, token);
        }
        await a.holdersAre(claim.resource, token);
        await a.releaseHeld(claim);
        await s.untilEmpty(a, claim.resource);
        const tried = await a.take(claim.resource);
        const again = expectKind(await a.enqueue(tried.claim), "granted", "tried, then enqueued");
        assert.equal(again.token, tried.token);
      },
    ),

    law(
      "L7.8",
      "a waiter that calls tryAcquire neither overtakes nor gets a second place",
      ["queue"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const held = await a!.take(resource);
        const first = await b!.wait(resource);
        const second = await c!.wait(resource);
        expectKind(await c!.try(second), "busy", "the second in the queue, asking out of turn");
        assert.equal((await a!.inspect(resource)).waiters.length, 2);
        await a!.releaseHeld(held.claim);
        await b!.untilGranted(first);
        await c!.stillWaits(second, "the second in the queue");
      },
    ),

    law("L7.9", "a repeated acquire does not undo a revocation", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim, token } = await a!.take(resource);
      assert.equal(await b!.revoke(resource, token), "revoked");
      assert.notEqual((await a!.try(claim)).kind, "granted", "a revoked grant asked for again");
      assert.equal(await b!.check(resource, token), false);
      expectKind(await a!.renew(claim), "gone", "a revoked grant");
    }),

    law(
      "L7.10",
      "an acquire that arrives again does not shorten a renewed grant",
      [],
      async (s) => {
        const [a, b] = await s.clients(2);
        const isSession = s.traits.expiry === "session";
        const lifeMs = s.ttl(isSession ? 1_500 : 5_000);
        for (const { terms, index } of s.variants) {
          const resource = s.resource();
          const { claim } = await a!.take(resource, { ...terms, ttlMs: lifeMs });
          const renewed = await a!.renew(claim, s.ttl(60_000), a!.call(), { index });
          const { ttlMs } = expectKind(renewed, "renewed", "a living grant");
          await a!.try(claim);
          if (isSession) {
            // Views need not show how long a session's grant lives, so the first ttl is waited for.
            // Where all grants of a session have one ttl, the renewal gave nothing more.
            if (ttlMs < 2 * lifeMs) return;
            await elapse(lifeMs * 1.5);
            await b!.refused(resource);
            return;
          }
          const [holder] = (await b!.inspect(resource)).holders;
          assert((holder?.remainingMs ?? 0) > 30_000, "the holder was promised a minute");
        }
      },
    ),

    law("L7.11", "a repeated enqueue is granted if its turn has come", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      await a!.take(resource, { ttlMs: s.lifeMs });
      const waiter = await b!.wait(resource);
      await s.expire(resource, s.lifeMs, a!);
      const deadline = systemClock.now() + 8_000;
      for (;;) {
        const answer = await b!.enqueue(waiter);
        if (answer.kind === "granted") break;
        assert(systemClock.now() < deadline, "the head asked for 8 s, and nobody was in the way");
        await elapse(50);
      }
      await c!.refused(resource);
    }),

    law(
      "L7.12",
      "a repeated enqueue keeps its place like a heartbeat",
      ["queue", "silence"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        await a!.take(resource);
        const first = await b!.wait(resource, { label: "first" });
        const second = await c!.wait(resource, { label: "second" });
        for (let i = 0; i < 3; i++) {
          await s.harness.silence!(resource, QUIET_MS);
          const again = expectKind(
            await b!.enqueue(first),
            "queued",
            "the same grantId in the queue",
          );
          assert.equal(again.position, 0, "a waiter that is heard of keeps its place");
          await c!.stillWaits(second, "the next in the queue");
        }
        const labels = (await a!.inspect(resource)).waiters.map((waiter) => waiter.label);
        assert.deepEqual(labels, ["first", "second"]);
      },
    ),
  ],
};
