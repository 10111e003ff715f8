import type { Granted } from "../../engine.js";
import { altered, alteredQueue, type WrongEngine } from "./altered.js";
import { GarbledAnswer } from "./garbling.js";

/** Treats an answer that it cannot understand as this answer. */
async function orElse<T>(asked: Promise<T>, taken: () => T): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof GarbledAnswer) return taken();
    throw error;
  }
}

const GONE = { kind: "gone", why: "unknown" } as const;

export const exactnessDefects: readonly WrongEngine[] = [
  {
    defect: "any answer to an acquire that is not understood counts as gone",
    law: "L20.1",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) => orElse(inner.tryAcquire(claim, call), () => GONE),
      }),
  },
  {
    defect: "any answer to an enqueue that is not understood counts as gone",
    law: "L20.2",
    overlay: (inner) =>
      alteredQueue(inner, {
        enqueue: (claim, call) => orElse(inner.queue!.enqueue(claim, call), () => GONE),
      }),
  },
  {
    defect: "any answer to a heartbeat that is not understood counts as unknown",
    law: "L20.3",
    overlay: (inner) =>
      alteredQueue(inner, {
        heartbeat: (waiters, call) =>
          orElse(inner.queue!.heartbeat(waiters, call), () =>
            waiters.map(() => ({ kind: "unknown" })),
          ),
      }),
  },
  {
    defect: "any answer to a withdrawal that is not understood counts as withdrawn",
    law: "L20.4",
    overlay: (inner) =>
      alteredQueue(inner, {
        withdraw: (waiter, call) =>
          orElse(inner.queue!.withdraw(waiter, call), () => ({ kind: "withdrawn" })),
      }),
  },
  {
    defect: "any answer to a renewal that is not a list counts as renewed",
    law: "L20.5",
    overlay: (inner) =>
      altered(inner, {
        renew: (refs, call) =>
          orElse(inner.renew(refs, call), () =>
            refs.map(({ ttlMs }) => ({ kind: "renewed", since: call.startedAt, ttlMs })),
          ),
      }),
  },
  {
    defect: "the entries of a batch that are missing count as renewed",
    law: "L20.6",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) => {
          if (refs.length === 1) return inner.renew(refs, call);
          return orElse(inner.renew(refs, call), () =>
            refs.map(({ ttlMs }, i) =>
              i === 0
                ? { kind: "failed", effect: "unknown", error: new Error("garbled") }
                : { kind: "renewed", since: call.startedAt, ttlMs },
            ),
          );
        },
      }),
  },
  {
    defect: "any answer to a release counts as released",
    law: "L20.7",
    overlay: (inner) =>
      altered(inner, {
        release: (refs, call) =>
          orElse(inner.release(refs, call), () => refs.map(() => ({ kind: "released" }))),
      }),
  },
  {
    defect: "any answer to check that is not yes is no",
    law: "L20.8",
    overlay: (inner) =>
      altered(inner, {
        check: (sequence, call) => orElse(inner.check(sequence, call), () => false),
      }),
  },
  {
    defect: "any answer to revoke that is not revoked is gone",
    law: "L20.9",
    overlay: (inner) =>
      altered(inner, { revoke: (ref, call) => orElse(inner.revoke(ref, call), () => "gone") }),
  },
  {
    defect: "a view that cannot be read is an empty one",
    law: "L20.10",
    overlay: (inner) =>
      altered(inner, {
        inspect: (resource, call) =>
          orElse(inner.inspect(resource, call), () => ({
            resource,
            holders: [],
            waiters: [],
            closedMs: 0,
          })),
      }),
  },
  {
    defect: "a lease lives on renewals that were never answered rightly",
    law: "L20.11",
    overlay: (inner) =>
      altered(inner, {
        renew: (refs, call) =>
          orElse(inner.renew(refs, call), () =>
            refs.map(({ ttlMs }) => ({ kind: "renewed", since: call.startedAt, ttlMs })),
          ),
      }),
  },
  {
    defect: "an acquire that was not understood is granted all the same",
    law: "L20.12",
    overlay: (inner) =>
      alteredQueue(inner, {
        enqueue: (claim, call) =>
          orElse(inner.queue!.enqueue(claim, call), () => {
            const { ttlMs } = claim;
            const granted: Granted = { kind: "granted", token: 1n, tokens: 1, since: 0, ttlMs };
            return { ...granted, since: call.startedAt };
          }),
      }),
  },
];
