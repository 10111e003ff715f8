import assert from "node:assert";
import { ClosedError, UsageError } from "../../errors.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse, within } from "../timing.js";
import { activeResources, leavesNoMoreThan } from "./leftovers.js";

const FAIRNESS = ["cohort", "strict"] as const;

export const close: LawGroup = {
  id: "L12",
  name: "close",
  text:
    "Closing releases what is held, ends every wait, and frees what the engine opened; it may be " +
    "called again. Afterwards nothing is accepted and nothing keeps the process alive.",
  laws: [
    law("L12.1", "close releases every lease that is held", [], async (s) => {
      const [a, b] = [await s.locks(), await s.locks()];
      const [one, other] = [s.resource("one"), s.resource("other")];
      await a.acquire(one);
      await a.acquire(other, { fair: "strict" });
      await within(10_000, a.close(), "close()");
      assert(await b.tryAcquire(one), "a lease of the cohort is released by close");
      assert(await b.tryAcquire(other), "a strict lease is released by close");
    }),

    law("L12.2", "close ends every wait and leaves no waiter", [], async (s) => {
      const [a, client] = [await s.locks(), await s.client()];
      const resource = s.resource();
      const held = await client.take(resource);
      const waits = FAIRNESS.flatMap((fair) => [
        a.acquire(resource, { fair, waitMs: Infinity }),
        a.acquire(resource, { fair, waitMs: 60_000 }),
      ]);
      for (const wait of waits) wait.catch(() => {});
      await elapse(30);
      await within(15_000, a.close(), "close()");
      for (const wait of waits) {
        await assert.rejects(within(10_000, wait, "a wait after close()"), ClosedError);
      }
      await client.releaseHeld(held.claim);
      await s.untilEmpty(client, resource);
    }),

    law(
      "L12.3",
      "close may be called again, and once closed nothing is accepted",
      [],
      async (s) => {
        const locks = await s.locks();
        const resource = s.resource();
        const lease = await locks.acquire(resource);
        await Promise.all([locks.close(), locks.close()]);
        await locks.close();
        await assert.rejects(locks.acquire(resource), UsageError);
        await assert.rejects(locks.tryAcquire(resource), UsageError);
        await assert.rejects(locks.inspect(resource), UsageError);
        await assert.rejects(locks.check(lease.sequencer), UsageError);
        await assert.rejects(locks.list().next(), UsageError);
        assert.equal(lease.held, false);
      },
    ),

    law("L12.4", "close leaves nothing that keeps the process alive", [], async (s) => {
      // The first client may warm up what all later ones share.
      const warm = await s.locks();
      await warm.run(s.resource(), () => {});
      await warm.close();
      await elapse(20);
      const before = activeResources();
      const locks = await s.locks();
      await locks.acquire(s.resource("held"));
      const taken = s.resource("taken");
      await locks.acquire(taken, { fair: "strict" });
      const wait = locks.acquire(taken, { fair: "strict" });
      wait.catch(() => {});
      await elapse(20);
      await within(15_000, locks.close(), "close()");
      await leavesNoMoreThan(before);
    }),

    law("L12.5", "close of a severed client ends within bounds", ["sever"], async (s) => {
      const { locks, engine } = await s.severable({ defaults: { callTimeoutMs: 1_500 } });
      const lease = await locks.acquire(s.resource());
      const heal = await s.harness.sever!(engine);
      await within(20_000, locks.close(), "close() without a backend");
      assert.equal(lease.held, false);
      await heal();
    }),

    law("L12.6", "a process that closed ends by itself", ["url"], async (s) => {
      const locks = await s.locks();
      const resource = s.resource();
      const child = s.child({ resource, options: { ttlMs: s.ttl(60_000) }, does: "close" });
      await child.until("closed");
      assert.equal(await child.exit(20_000), 0);
      assert(await locks.tryAcquire(resource), "what it held was released");
    }),

    law("L12.7", "a held lease alone does not keep a process alive", ["url"], async (s) => {
      const child = s.child({
        resource: s.resource(),
        options: { ttlMs: s.ttl(60_000) },
        does: "leave",
      });
      await child.until("held");
      assert.equal(await child.exit(20_000), 0);
    }),
  ],
};
