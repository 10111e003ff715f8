import assert from "node:assert";
import { getEventListeners } from "node:events";
import type { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, gate, within } from "../timing.js";
import { activeResources, leavesNoMoreThan } from "./leftovers.js";

const FAIRNESS = ["cohort", "strict"] as const;
const MANY = 1_000;

/** The wait must end with exactly this reason, and soon. */
async function endsWith(work: Promise<unknown>, reason: unknown): Promise<void> {
  const caught = await within(10_000, work, "an aborted wait").then(
    () => assert.fail("an aborted wait was granted"),
    (error: unknown) => error,
  );
  assert.equal(caught, reason, "an abort rethrows the signal's reason untouched");
}

function noListeners(signal: AbortSignal): void {
  assert.equal(getEventListeners(signal, "abort").length, 0, "listeners left on the signal");
}

/** An engine may connect at its first call, and its connection outlives the wait. */
async function connected(locks: Locks): Promise<void> {
  await locks.inspect("nobody locks this");
}

/** Holds the resource, starts one wait and returns its AbortController. */
async function waiting(s: LawContext, locks: Locks, options: AcquireOptions) {
  const holder = await s.client();
  const resource = s.resource();
  const held = await holder.take(resource);
  const controller = new AbortController();
  const { signal } = controller;
  await connected(locks);
  const before = activeResources();
  const work = locks.acquire(resource, { ...options, signal });
  work.catch(() => {});
  return { holder, resource, held, controller, signal, before, work };
}

export const abort: LawGroup = {
  id: "L10",
  name: "abort leaves nothing behind",
  text:
    "A wait that is aborted, in any phase, ends with the signal's reason and leaves no waiter, " +
    "no grant, no timer and no listener.",
  laws: [
    law(
      "L10.1",
      "an acquire with an aborted signal sends nothing to the backend",
      [],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const reason = new Error("before the start");
        for (const fair of FAIRNESS) {
          const options = { signal: AbortSignal.abort(reason), fair };
          await endsWith(locks.acquire(s.resource(), options), reason);
          await endsWith(locks.tryAcquire(s.resource(), options), reason);
        }
        assert.equal(flaky.calls("tryAcquire") + flaky.calls("enqueue"), 0);
      },
    ),

    law(
      "L10.2",
      "an abort in the queue leaves no waiter, no timer and no listener",
      [],
      async (s) => {
        for (const fair of FAIRNESS) {
          const locks = await s.locks();
          const wait = await waiting(s, locks, { fair });
          await s.untilWaiters(locks, wait.resource, 1);
          // Neither an Error nor truthy: the caller gets exactly its own reason.
          wait.controller.abort(0);
          await endsWith(wait.work, 0);
          noListeners(wait.signal);
          await wait.holder.releaseHeld(wait.held.claim);
          await s.untilEmpty(wait.holder, wait.resource);
          await leavesNoMoreThan(wait.before);
        }
      },
    ),

    law("L10.3", "an abort while the answer is under way leaves no grant", [], async (s) => {
      for (const fair of FAIRNESS) {
        for (const waits of [true, false]) {
          const { locks, flaky } = await s.flakyLocks();
          const resource = s.resource(`${fair}-${waits}`);
          const answer = gate();
          const verb = waits && flaky.queue ? "enqueue" : "tryAcquire";
          flaky.inject(verb, { kind: "hold-reply", until: answer.opened });
          const controller = new AbortController();
          const { signal } = controller;
          const reason = new Error("on the way back");
          const options = { fair, signal };
          const work = waits
            ? locks.acquire(resource, options)
            : locks.tryAcquire(resource, options);
          work.catch(() => {});
          await elapse(20);
          controller.abort(reason);
          await endsWith(work, reason);
          noListeners(signal);
          answer.open();
          await s.untilEmpty(await s.client(), resource);
        }
      }
    }),

    law(
      "L10.4",
      "an abort before the request arrives leaves no grant and no waiter",
      [],
      async (s) => {
        for (const fair of FAIRNESS) {
          for (const taken of [false, true]) {
            const { locks, flaky } = await s.flakyLocks();
            const client = await s.client();
            const resource = s.resource(`${fair}-${taken}`);
            const held = taken ? await client.take(resource) : null;
            const request = gate();
            const fault = { kind: "hold-request", until: request.opened } as const;
            for (const verb of ["enqueue", "tryAcquire"] as const) flaky.inject(verb, fault);
            const controller = new AbortController();
            const reason = new Error("on the way there");
            const work = locks.acquire(resource, { fair, signal: controller.signal });
            work.catch(() => {});
            await elapse(10);
            controller.abort(reason);
            await endsWith(work, reason);
            // The clean-up has overtaken the claim. The late claim must find a tombstone.
            await elapse(50);
            request.open();
            await elapse(30);
            if (held) await client.releaseHeld(held.claim);
            await s.untilEmpty(client, resource);
          }
        }
      },
    ),

    law("L10.5", "an abort that races with the grant leaves a lease or nothing", [], async (s) => {
      const locks = await s.locks();
      for (let round = 0; round < 16; round++) {
        const fair = FAIRNESS[round % 2]!;
        const wait = await waiting(s, locks, { fair });
        if (round % 4 < 2) await s.untilWaiters(locks, wait.resource, 1);
        const reason = new Error("at the same time");
        const releasing = wait.holder.releaseHeld(wait.held.claim);
        if (round % 3 === 0) await Promise.resolve();
        if (round % 3 === 1) await elapse(0);
        wait.controller.abort(reason);
        const lease = await within(10_000, wait.work, "a racing wait").catch((error: unknown) => {
          assert.equal(error, reason);
          return null;
        });
        await releasing;
        if (lease !== null) {
          assert.equal(lease.held, true, "the signal governs the waiting, not the holding");
          assert.equal(await lease.release(), "released");
        }
        noListeners(wait.signal);
        await s.untilEmpty(wait.holder, wait.resource);
      }
    }),

    law(
      "L10.6",
      "an abort lets in the waiters that the aborted one kept out",
      ["queue", "shared"],
      async (s) => {
        for (const fair of FAIRNESS) {
          const [a, b] = [await s.locks(), await s.locks()];
          const resource = s.resource();
          const reader = await a.acquire(resource, { mode: "shared" });
          const controller = new AbortController();
          const writing = a.acquire(resource, { signal: controller.signal, fair });
          writing.catch(() => {});
          await s.untilWaiters(b, resource, 1);
          const reading = b.acquire(resource, { mode: "shared" });
          await s.untilWaiters(b, resource, 2);
          controller.abort(new Error("never mind"));
          const lease = await within(15_000, reading, "the reader behind an aborted writer");
          assert.equal(lease.held && reader.held, true);
        }
      },
    ),

    law(
      "L10.7",
      "a wait that times out leaves no waiter, no timer and no listener",
      [],
      async (s) => {
        for (const fair of FAIRNESS) {
          const locks = await s.locks();
          const wait = await waiting(s, locks, { fair, waitMs: 80 });
          await assert.rejects(within(15_000, wait.work, "a wait that times out"), {
            code: "ACQUIRE_TIMEOUT",
          });
          noListeners(wait.signal);
          await wait.holder.releaseHeld(wait.held.claim);
          await s.untilEmpty(wait.holder, wait.resource);
          await leavesNoMoreThan(wait.before);
        }
      },
    ),

    law("L10.8", "a thousand aborted waits leave nothing at all", [], async (s) => {
      const client = await s.client();
      for (const fair of FAIRNESS) {
        const locks = await s.locks();
        const resource = s.resource();
        const held = await client.take(resource);
        const controller = new AbortController();
        const { signal } = controller;
        await connected(locks);
        const before = activeResources();
        const reason = new Error("all of them");
        const waits = Array.from({ length: MANY }, () =>
          locks
            .acquire(resource, { signal, fair, waitMs: 60_000 })
            .catch((error: unknown) => error),
        );
        await elapse(30);
        controller.abort(reason);
        const outcomes = await within(40_000, Promise.all(waits), "a thousand aborted waits");
        assert(outcomes.every((outcome) => outcome === reason));
        noListeners(signal);
        await client.releaseHeld(held.claim);
        await s.untilEmpty(client, resource, 30_000);
        // A database needs seconds to remove so many waiters; this is only an upper bound.
        await leavesNoMoreThan(before, 30_000);
        const lease = await within(10_000, locks.acquire(resource), "an acquire after them");
        assert.equal(await lease.release(), "released");
      }
    }),
  ],
};
