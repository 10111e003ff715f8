import assert from "node:assert";
import { AcquireTimeoutError, EngineError } from "../../errors.js";
import { expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";

export const exclusion: LawGroup = {
  id: "L1",
  name: "exclusion",
  text:
    "While an exclusive grant lives, nobody else is granted the resource, in any mode or by " +
    "any verb. Busy is an answer. A claim never overtakes a waiter.",
  laws: [
    law("L1.1", "an exclusive grant keeps another client's exclusive claim out", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      await b!.refused(resource);
      await b!.holdersAre(resource, held.token);
    }),

    law("L1.2", "an exclusive grant keeps its own client's next claim out", [], async (s) => {
      const a = await s.client();
      const resource = s.resource();
      await a.take(resource);
      await a.refused(resource, {}, "a second claim of the same client");
    }),

    law("L1.3", "an exclusive grant keeps shared claims out", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      await a!.take(resource);
      await b!.refused(resource, { mode: "shared" });
      await a!.refused(resource, { mode: "shared" });
    }),

    law("L1.4", "a shared grant keeps exclusive claims out", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource, { mode: "shared" });
      const second = await b!.take(resource, { mode: "shared" });
      await b!.refused(resource);
      await a!.releaseHeld(first.claim);
      await a!.refused(resource, {}, "an exclusive claim while one reader is left");
      await b!.releaseHeld(second.claim);
      await a!.take(resource);
    }),

    law(
      "L1.5",
      "an exclusive grant makes every later claim wait in the queue",
      ["queue"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const held = await a!.take(resource);
        const second = await b!.wait(resource);
        const third = await c!.wait(resource);
        await b!.stillWaits(second, "a waiter behind a live holder");
        await c!.stillWaits(third, "a waiter behind a waiter");
        await c!.holdersAre(resource, held.token);
      },
    ),

    law(
      "L1.6",
      "shared and exclusive waiters do not get past a holder of the other mode",
      ["queue", "shared"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const [written, read] = [s.resource("written"), s.resource("read")];
        await a!.take(written);
        await b!.stillWaits(await b!.wait(written, { mode: "shared" }), "a reader behind a writer");
        await a!.take(read, { mode: "shared" });
        await b!.stillWaits(await b!.wait(read), "a writer behind a reader");
      },
    ),

    law("L1.7", "a claim that does not wait never overtakes a waiter", ["queue"], async (s) => {
      const [a, b, c] = await s.clients(3);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await a!.releaseHeld(held.claim);
      await c!.refused(resource, {}, "a claim while somebody waits");
      await b!.untilGranted(waiter);
    }),

    law("L1.8", "of many claims at the same instant exactly one is granted", [], async (s) => {
      const clients = await s.clients(4);
      const resource = s.resource();
      const claims = clients.flatMap((client) => [client, client, client]);
      const answers = await Promise.all(claims.map((c) => c.try(c.claim(resource))));
      const granted = answers.filter((answer) => answer.kind === "granted");
      assert.equal(granted.length, 1, "grants of one exclusive resource");
      assert(answers.every((answer) => answer.kind !== "gone"));
    }),

    law("L1.9", "a release frees the resource for another client at once", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      for (let round = 0; round < 5; round++) {
        const held = await a!.take(resource);
        await b!.refused(resource);
        await a!.releaseHeld(held.claim);
        await b!.releaseHeld((await b!.take(resource)).claim);
      }
      const view = await a!.inspect(resource);
      assert.deepEqual([view.holders, view.waiters], [[], []], "a free resource shows nobody");
    }),

    law("L1.10", "a claim that was refused leaves nothing behind", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const refused = b!.claim(resource);
      expectKind(await b!.try(refused), "busy", "a claim on a held resource");
      assert.equal((await a!.inspect(resource)).waiters.length, 0);
      expectKind(await b!.release(refused), "gone", "the release of what was never granted");
      await a!.releaseHeld(held.claim);
      await s.untilEmpty(b!, resource);
    }),

    law(
      "L1.11",
      "through the API, tryAcquire returns null and acquire times out while another client holds",
      [],
      async (s) => {
        const [a, b] = [await s.locks(), await s.locks()];
        const resource = s.resource();
        const lease = await a.acquire(resource, { label: "the holder" });
        assert.equal(await b.tryAcquire(resource), null);
        assert.equal(await a.tryAcquire(resource), null);
        for (const fair of ["cohort", "strict"] as const) {
          let told: unknown = null;
          // A backend that is too busy to answer within such a short wait counts as silent.
          for (const waitMs of [50, 500, 5_000]) {
            told = await b.acquire(resource, { waitMs, fair }).catch((error: unknown) => error);
            if (told instanceof EngineError && told.effect === "unknown") continue;
            assert(told instanceof AcquireTimeoutError, `got ${String(told)}`);
            assert(told.waitedMs >= waitMs - 1, "acquire must not time out before waitMs");
            break;
          }
          assert(told instanceof AcquireTimeoutError, `got ${String(told)}`);
        }
        assert.equal(lease.held, true);
        assert.equal(await lease.release(), "released");
        const next = await b.tryAcquire(resource);
        assert(next !== null, "a released resource is free");
        assert(next.token > lease.token);
      },
    ),
  ],
};
