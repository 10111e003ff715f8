import assert from "node:assert";
import { UsageError } from "../../errors.js";
import type { ClaimTerms, Client } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";

/** The refusal must name both limits, so that the reader knows which one to change. */
async function mismatch(client: Client, resource: string, terms: ClaimTerms, ...names: RegExp[]) {
  const claim = client.claim(resource, { mode: "shared", ...terms });
  await assert.rejects(client.try(claim), (error) => {
    assert(error instanceof UsageError, `another limit is the caller's mistake, got ${error}`);
    for (const name of names) assert.match(error.message, name);
    return true;
  });
}

export const sharing: LawGroup = {
  id: "L2",
  name: "sharing and counting",
  text:
    "Shared grants live side by side, up to their limit and not one more. All shared claims alive " +
    "on a resource, waiting ones included, have one limit; another is refused with a UsageError " +
    "that names both, and changes nothing.",
  laws: [
    law("L2.1", "shared grants without a limit live side by side", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const tokens: bigint[] = [];
      for (let i = 0; i < 10; i++) {
        tokens.push((await a!.take(resource, { mode: "shared" })).token);
        tokens.push((await b!.take(resource, { mode: "shared" })).token);
      }
      await a!.holdersAre(resource, ...tokens);
    }),

    law("L2.2", "a limit of n admits n shared grants and no more", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      for (const limit of [1, 2, 5]) {
        const resource = s.resource(`limit-${limit}`);
        const terms: ClaimTerms = { mode: "shared", limit };
        for (let i = 0; i < limit; i++) await (i % 2 ? a! : b!).take(resource, terms);
        await a!.refused(resource, terms, `claim number ${limit + 1} at limit ${limit}`);
        await b!.refused(resource, {}, "an exclusive claim among shared ones");
      }
    }),

    law("L2.3", "a released permit admits exactly one more", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const terms: ClaimTerms = { mode: "shared", limit: 2 };
      const first = await a!.take(resource, terms);
      await b!.take(resource, terms);
      await a!.releaseHeld(first.claim);
      await b!.take(resource, terms);
      await a!.refused(resource, terms);
      await a!.release(first.claim);
      await a!.refused(resource, terms, "a claim after somebody's repeated release");
    }),

    law("L2.4", "an expired permit admits exactly one more", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const terms: ClaimTerms = { mode: "shared", limit: 2 };
      await a!.take(resource, { ...terms, ttlMs: s.lifeMs });
      await b!.take(resource, { ...terms, ttlMs: s.lifeMs * 10 });
      await b!.refused(resource, terms);
      await s.expire(resource, s.lifeMs, a!);
      await b!.take(resource, terms);
      await b!.refused(resource, terms, "a claim while two permits of two are out");
    }),

    law("L2.5", "of many shared claims at once exactly n are granted", ["limits"], async (s) => {
      const clients = await s.clients(3);
      const resource = s.resource();
      const claims = clients.flatMap((client) => [client, client, client, client]);
      const answers = await Promise.all(
        claims.map((c) => c.try(c.claim(resource, { mode: "shared", limit: 3 }))),
      );
      assert.equal(answers.filter((answer) => answer.kind === "granted").length, 3);
    }),

    law("L2.6", "another limit is refused by an error that names both", ["limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const [counted, open] = [s.resource("counted"), s.resource("open")];
      const held = await a!.take(counted, { mode: "shared", limit: 7 });
      await mismatch(b!, counted, { limit: 9 }, /\b7\b/, /\b9\b/);
      await mismatch(b!, counted, { limit: null }, /\b7\b/, /no limit/i);
      await a!.take(open, { mode: "shared" });
      await mismatch(b!, open, { limit: 9 }, /no limit/i, /\b9\b/);
      const view = await b!.inspect(counted);
      assert.deepEqual([view.holders.length, view.waiters.length], [1, 0]);
      await a!.releaseHeld(held.claim);
    }),

    law(
      "L2.7",
      "a new limit is accepted once every claim with the old one is gone",
      ["limits"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await a!.take(resource, { mode: "shared", limit: 7 });
        await a!.releaseHeld(held.claim);
        const other = await b!.take(resource, { mode: "shared", limit: 9 });
        await mismatch(a!, resource, { limit: 7 }, /\b7\b/, /\b9\b/);
        await b!.releaseHeld(other.claim);
        await a!.take(resource, { mode: "shared", limit: null, ttlMs: s.lifeMs });
        await s.expire(resource, s.lifeMs, a!);
        await b!.take(resource, { mode: "shared", limit: 2 });
      },
    ),

    law("L2.8", "a waiter's limit binds later claims too", ["queue", "limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      await a!.take(resource);
      const waiter = await b!.wait(resource, { mode: "shared", limit: 4 });
      await mismatch(a!, resource, { limit: 6 }, /\b4\b/, /\b6\b/);
      const queued = b!.claim(resource, { mode: "shared", limit: 6 });
      await assert.rejects(b!.enqueue(queued), UsageError);
      assert.equal((await a!.inspect(resource)).waiters.length, 1, "the refused one does not wait");
      await b!.stillWaits(waiter, "the waiter whose limit came first");
    }),

    law(
      "L2.9",
      "no later reader overtakes a waiting writer, by any verb",
      ["queue", "shared"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const reader = await a!.take(resource, { mode: "shared" });
        const writer = await b!.wait(resource);
        await c!.refused(resource, { mode: "shared" }, "a reader while a writer waits");
        const late = await c!.wait(resource, { mode: "shared" });
        await c!.stillWaits(late, "a reader behind a waiting writer");
        await a!.releaseHeld(reader.claim);
        const written = await b!.untilGranted(writer);
        await c!.stillWaits(late, "a reader behind a writer at work");
        await b!.releaseHeld(written.claim);
        await c!.untilGranted(late);
      },
    ),

    law(
      "L2.10",
      "readers next in the queue are let in together",
      ["queue", "shared"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        const resource = s.resource();
        const writer = await a!.take(resource);
        const first = await b!.wait(resource, { mode: "shared" });
        const second = await c!.wait(resource, { mode: "shared" });
        const last = await a!.wait(resource);
        await a!.releaseHeld(writer.claim);
        const readers = [await b!.untilGranted(first), await c!.untilGranted(second)];
        await a!.stillWaits(last, "a writer behind two readers");
        await b!.releaseHeld(first);
        await a!.stillWaits(last, "a writer behind one reader");
        await a!.holdersAre(resource, readers[1]!.token);
        await c!.releaseHeld(second);
        await a!.untilGranted(last);
      },
    ),

    law("L2.11", "waiters are let in up to their limit", ["queue", "limits"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const terms: ClaimTerms = { mode: "shared", limit: 2 };
      const writer = await a!.take(resource);
      const waiters = [];
      for (let i = 0; i < 3; i++) waiters.push(await b!.wait(resource, terms));
      await a!.releaseHeld(writer.claim);
      await b!.untilGranted(waiters[0]!);
      await b!.untilGranted(waiters[1]!);
      await b!.stillWaits(waiters[2]!, "the third at limit 2");
      await b!.releaseHeld(waiters[0]!);
      await b!.untilGranted(waiters[2]!);
    }),

    law(
      "L2.12",
      "a waiter is eligible only if everyone before it is",
      ["queue", "limits"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const terms: ClaimTerms = { mode: "shared", limit: 2 };
        const reader = await a!.take(resource, terms);
        const writer = await b!.wait(resource);
        // A permit is free, but the writer came first.
        const second = await b!.wait(resource, terms);
        await b!.stillWaits(second, "a permit behind a writer");
        await a!.releaseHeld(reader.claim);
        await b!.untilGranted(writer);
        await b!.stillWaits(second, "a permit behind a writer at work");
      },
    ),

    law(
      "L2.13",
      "through the API, a waiting writer is served before readers that came later",
      ["shared"],
      async (s) => {
        const [a, b, c] = [await s.locks(), await s.locks(), await s.locks()];
        const resource = s.resource();
        const reader = await a.acquire(resource, { mode: "shared" });
        const seen: string[] = [];
        const writing = b.run(resource, { waitMs: 40_000 }, () => {
          seen.push("writer");
        });
        writing.catch(() => {});
        await s.untilWaiters(a, resource, 1);
        const early = await c.tryAcquire(resource, { mode: "shared" });
        assert.equal(early, null, "a reader that came after the writer must not get in before it");
        const reading = c.run(resource, { mode: "shared", waitMs: 40_000 }, () => {
          seen.push("reader");
        });
        await s.untilWaiters(a, resource, 2);
        await reader.release();
        await Promise.all([writing, reading]);
        assert.deepEqual(seen, ["writer", "reader"]);
      },
    ),
  ],
};
