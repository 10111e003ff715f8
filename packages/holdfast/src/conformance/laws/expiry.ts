import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse } from "../timing.js";
import { leavingLaws } from "./leaving.js";
import { validityLaws } from "./validity.js";

/** Real time needs a margin for a busy machine. */
const LATE_MS = 6_000;

export const expiry: LawGroup = {
  id: "L4",
  name: "expiry and validity",
  text:
    "A grant that nobody renews ends at its ttl: never earlier, and without any action. Every " +
    "granted or renewed answer says since when it counts, and that is no later than the start of " +
    "the call that set the backend's expiry: what the holder believes ends before what the backend " +
    "keeps.",
  laws: [
    law("L4.1", "a grant that nobody renews is free at its ttl, not before", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const ttlMs = s.ttl(800);
      const { granted } = await a!.take(resource, { ttlMs });
      if (s.traits.expiry === "session") await s.harness.sever?.(a!.engine);
      const end = granted.since + granted.ttlMs;
      for (;;) {
        const answer = await b!.try(b!.claim(resource));
        const now = systemClock.now();
        if (answer.kind === "granted") {
          assert(now >= end, `granted ${(end - now).toFixed(1)} ms before the holder's end`);
          return;
        }
        expectKind(answer, "busy", "a claim before the end");
        assert(now < end + ttlMs + LATE_MS, "the grant must end by itself");
        await elapse(5);
      }
    }),

    law("L4.2", "a grant holds until shortly before its ttl", ["age"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim } = await a!.take(resource, { ttlMs: s.ttl(60_000) });
      await s.pass(resource, claim.ttlMs - 5_000);
      await b!.refused(resource, {}, "a claim 5 s before the end");
      await s.pass(resource, 5_005);
      await b!.take(resource);
    }),

    law("L4.3", "a renewal postpones the end to a whole ttl from its start", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const ttlMs = s.lifeMs;
      const { claim } = await a!.take(resource, { ttlMs });
      for (let round = 0; round < 2; round++) {
        await s.pass(resource, ttlMs * 0.6);
        expectKind(await a!.renew(claim, ttlMs), "renewed", "a renewal in time");
        await b!.refused(resource);
      }
      await s.expire(resource, ttlMs, a!);
      await b!.take(resource);
    }),

    law(
      "L4.4",
      "a shared grant ends at its own ttl, not at a neighbour's",
      ["shared"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        await a!.take(resource, { mode: "shared", ttlMs: s.lifeMs });
        const longer = await b!.take(resource, { mode: "shared", ttlMs: s.lifeMs * 10 });
        await s.expire(resource, s.lifeMs, a!);
        await a!.holdersAre(resource, longer.token);
        await a!.refused(resource, {}, "a writer while one reader is left");
        assert.equal(await a!.check(resource, longer.token, "shared"), true);
      },
    ),

    law("L4.5", "an expired holder is no longer among the holders", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource, { ttlMs: s.lifeMs });
      const [holder] = (await b!.inspect(resource)).holders;
      assert(holder, "a live holder is shown");
      assert(holder.remainingMs <= s.lifeMs + 10 && holder.remainingMs > 0, "what remains of it");
      await s.expire(resource, s.lifeMs, a!);
      await b!.holdersAre(resource);
      assert.equal(await b!.check(resource, held.token), false);
    }),

    law("L4.6", "an expired holder's waiter is granted by its heartbeat", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      await a!.take(resource, { ttlMs: s.lifeMs });
      const first = await b!.wait(resource);
      const second = await c!.wait(resource);
      await s.expire(resource, s.lifeMs, a!);
      // The second waiter asks first, which must not make it the first.
      await c!.stillWaits(second, "the second in the queue, though it asked first");
      await b!.untilGranted(first);
    }),

    law(
      "L4.7",
      "through the API, a lease is lost locally before the backend lets anybody else in",
      [],
      async (s) => {
        const [a, b] = [await s.locks(), await s.client()];
        const resource = s.resource();
        const ttlMs = s.ttl(400);
        const lease = await a.acquire(resource, { ttlMs, renew: false });
        if (s.traits.expiry === "session") return;
        const deadline = systemClock.now() + ttlMs + LATE_MS;
        for (;;) {
          const answer = await b.try(b.claim(resource));
          if (answer.kind === "granted") break;
          assert(systemClock.now() < deadline, "the grant must end by itself");
          await elapse(5);
        }
        assert.equal(lease.held, false, "held while another client was granted the resource");
        assert.equal(await lease.release(), "gone");
        await b.refused(resource);
      },
    ),

    law("L4.8", "a holder killed with SIGKILL is succeeded within its ttl", ["url"], async (s) => {
      const locks = await s.locks();
      // A busy machine can lose a short lease in any engine; a holder that is not renewed loses
      // every one.
      for (const wantedMs of [600, 3_000, 10_000]) {
        const resource = s.resource();
        const ttlMs = s.ttl(wantedMs);
        const child = s.child({ resource, options: { ttlMs }, does: "hold" });
        const { token } = await child.until("held");
        await elapse(ttlMs * 1.2);
        const early = await locks.tryAcquire(resource);
        await early?.release();
        await child.end();
        if (early !== null) continue;
        const killedAt = systemClock.now();
        const lease = await locks.acquire(resource, { waitMs: ttlMs * 2 + 2 * LATE_MS });
        const tookMs = systemClock.now() - killedAt;
        assert(tookMs < ttlMs * 1.5 + LATE_MS, `the succession took ${tookMs.toFixed(0)} ms`);
        assert(lease.token > BigInt(token));
        return;
      }
      assert.fail("a live holder is renewed");
    }),
    ...validityLaws,
    ...leavingLaws,
  ],
};
