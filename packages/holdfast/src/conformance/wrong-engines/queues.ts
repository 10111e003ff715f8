import type { Claim } from "../../engine.js";
import type { Queue } from "../../engines/memory/queue.js";
import { type MemoryGrant, MemoryStore, type QueuedWaiter } from "../../engines/memory/store.js";
import { EngineError } from "../../errors.js";
import { altered, alteredQueue, memoryGrantOf, type WrongEngine } from "./altered.js";

/** Removes all waiters from a queue. */
function emptied(queue: Queue | undefined): QueuedWaiter[] {
  const waiting = [...(queue ?? [])];
  for (const { claim } of waiting) queue!.leave(claim.grantId);
  return waiting;
}

/** Does the work as if nobody waited for the resource. */
function withoutQueue<T>(store: MemoryStore, resource: string, work: () => T): T {
  const records = store.resources.get(resource);
  const waiters = emptied(records?.queue);
  const result = work();
  if (records && waiters.length > 0) {
    for (const waiting of waiters) records.queue.join(waiting);
    store.resources.set(resource, records);
  }
  return result;
}

class LastComeFirstServed extends MemoryStore {
  override enqueue(waiting: QueuedWaiter): void {
    const others = emptied(this.resources.get(waiting.claim.resource)?.queue);
    for (const one of [waiting, ...others]) super.enqueue(one);
  }
}

/** A release only frees the resource, and the next claim takes it, ahead of the queue. */
class Barging extends MemoryStore {
  override tryGrant(claim: Claim, now: number): MemoryGrant | null {
    return withoutQueue(this, claim.resource, () => super.tryGrant(claim, now));
  }

  override settle(resource: string, now: number): void {
    withoutQueue(this, resource, () => super.settle(resource, now));
  }
}

class ReadersFirst extends MemoryStore {
  override tryGrant(claim: Claim, now: number): MemoryGrant | null {
    if (claim.mode === "exclusive") return super.tryGrant(claim, now);
    return withoutQueue(this, claim.resource, () => super.tryGrant(claim, now));
  }
}

/** Looks behind the head of the queue for a waiter that fits. */
class Skipping extends MemoryStore {
  override settle(resource: string, now: number): void {
    super.settle(resource, now);
    const records = this.resources.get(resource);
    const modes = [...(records?.grants.values() ?? [])].map(({ claim }) => claim.mode);
    if (!records || modes.length === 0 || modes.includes("exclusive")) return;
    const waiting = [...records.queue].find(({ claim }) => claim.mode === "shared");
    if (waiting === undefined || waiting === records.queue.first) return;
    records.queue.leave(waiting.claim.grantId);
    const grant = withoutQueue(this, resource, () => super.tryGrant(waiting.claim, now));
    if (grant) waiting.push(grant, now);
  }
}

/** Only a holder's release lets waiters in; expiries and withdrawals do not. */
class OnlyReleasesPromote extends MemoryStore {
  override settle(resource: string, now: number): void {
    withoutQueue(this, resource, () => super.settle(resource, now));
  }

  override end(resource: string, grantId: string, now: number): boolean {
    if (this.position(resource, grantId) >= 0) return super.end(resource, grantId, now);
    const ended = super.end(resource, grantId, now);
    super.settle(resource, now);
    return ended;
  }
}

function lostForGood(): EngineError {
  return new EngineError("the connection is broken", { effect: "none", retryable: true });
}

export const queueDefects: readonly WrongEngine[] = [
  { defect: "last come, first served", law: "L13.1", store: () => new LastComeFirstServed() },
  { defect: "tryAcquire barges past waiters", law: "L1.7", store: () => new Barging() },
  { defect: "readers overtake a waiting writer", law: "L2.9", store: () => new ReadersFirst() },
  { defect: "a reader is let in past the head", law: "L2.12", store: () => new Skipping() },
  { defect: "an expiry lets no waiter in", law: "L4.6", store: () => new OnlyReleasesPromote() },
  {
    defect: "the head's withdrawal lets no waiter in",
    law: "L13.4",
    store: () => new OnlyReleasesPromote(),
  },
  {
    defect: "a waiter that sends a heartbeat moves to the head of the queue",
    law: "L13.1",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        heartbeat(refs, call) {
          for (const ref of refs) {
            const queue = store.resources.get(ref.resource)?.queue;
            const asker = queue?.leave(ref.grantId);
            if (asker === undefined) continue;
            for (const waiting of [asker, ...emptied(queue)]) queue!.join(waiting);
          }
          return inner.queue!.heartbeat(refs, call);
        },
      }),
  },
  {
    defect: "every position is the head's",
    law: "L13.2",
    overlay: (inner) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          const answer = await inner.queue!.enqueue(claim, call);
          return answer.kind === "queued" ? { ...answer, position: 0 } : answer;
        },
      }),
  },
  {
    defect: "heartbeats are answered in another order",
    law: "L13.8",
    overlay: (inner) =>
      alteredQueue(inner, {
        heartbeat: async (refs, call) => (await inner.queue!.heartbeat(refs, call)).toReversed(),
      }),
  },
  {
    defect: "a withdrawal ends the grant that came first",
    law: "L13.6",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        async withdraw(ref, call) {
          store.end(ref.resource, ref.grantId, call.startedAt);
          return { kind: "withdrawn" };
        },
      }),
  },
  {
    defect: "a release wakes nobody",
    law: "L14.1",
    overlay: (inner) => alteredQueue(inner, { onGrant: () => () => {} }),
  },
  {
    defect: "a lost wake-up stays lost: no push, and no heartbeat that tells",
    law: "L14.2",
    overlay: (inner) =>
      alteredQueue(inner, {
        onGrant: () => () => {},
        async heartbeat(refs, call) {
          const answers = await inner.queue!.heartbeat(refs, call);
          return answers.map((answer) =>
            answer.kind === "granted"
              ? { kind: "queued", position: 0, nextHeartbeatMs: 1_000, holders: [] }
              : answer,
          );
        },
      }),
  },
  {
    defect: "a grant that a dead waiter never took lasts for ever",
    law: "L16.1",
    overlay: (inner, store) => {
      inner.queue!.onGrant((ref) => {
        const grant = memoryGrantOf(store, ref);
        if (grant) grant.expiresAt = Infinity;
      });
      return inner;
    },
  },
  {
    defect: "neither withdraw nor release takes a waiter out of the queue",
    law: "L10.2",
    overlay: (inner, store) =>
      altered(inner, {
        async release(refs, call) {
          const waits = refs.some((ref) => store.position(ref.resource, ref.grantId) >= 0);
          return waits ? refs.map(() => ({ kind: "released" })) : inner.release(refs, call);
        },
        queue: { ...inner.queue!, withdraw: async () => ({ kind: "withdrawn" }) },
      }),
  },
  {
    defect: "a waiter that leaves stops the pushes and heartbeats of its neighbours",
    law: "L14.7",
    overlay: (inner) => {
      let silent = false;
      return altered(inner, {
        release(refs, call) {
          silent = true;
          return inner.release(refs, call);
        },
        queue: {
          ...inner.queue!,
          onGrant: (listener) =>
            inner.queue!.onGrant((ref, granted) => {
              if (!silent) listener(ref, granted);
            }),
          heartbeat: (refs, call) =>
            silent ? new Promise(() => {}) : inner.queue!.heartbeat(refs, call),
        },
      });
    },
  },
  {
    defect: "what a waiter does inside the callback of its grant is forgotten",
    law: "L14.9",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        onGrant: (listener) =>
          inner.queue!.onGrant((ref, granted) => {
            listener(ref, granted);
            store.resources.delete(ref.resource);
          }),
      }),
  },
  {
    defect: "a waiter that was cut off once never gets an answer again",
    law: "L14.8",
    overlay: (inner) => {
      let broken = false;
      return alteredQueue(inner, {
        onGrant: () => () => {},
        async heartbeat(refs, call) {
          if (broken) throw lostForGood();
          try {
            return await inner.queue!.heartbeat(refs, call);
          } catch (error) {
            broken = true;
            throw error;
          }
        },
      });
    },
  },
];
