import type { Engine, Granted } from "../../engine.js";
import { altered, alteredQueue, type WrongEngine } from "./altered.js";

// Each of these engines reports twice the life that the store keeps.

function twice<A extends { readonly kind: string }>(answer: A): A {
  if (answer.kind !== "granted" && answer.kind !== "renewed") return answer;
  return { ...answer, ttlMs: (answer as unknown as Granted).ttlMs * 2 };
}

/** Remembers which grantIds were claimed before. */
function repeats(): (grantId: string) => boolean {
  const seen = new Set<string>();
  return (grantId) => seen.size === seen.add(grantId).size;
}

function doublesRepeats(inner: Engine, verb: "tryAcquire" | "enqueue"): Engine {
  const isRepeat = repeats();
  if (verb === "tryAcquire") {
    return altered(inner, {
      tryAcquire: async (claim, call) => {
        const answer = await inner.tryAcquire(claim, call);
        return isRepeat(claim.grantId) ? twice(answer) : answer;
      },
    });
  }
  return alteredQueue(inner, {
    enqueue: async (claim, call) => {
      const answer = await inner.queue!.enqueue(claim, call);
      return isRepeat(claim.grantId) ? twice(answer) : answer;
    },
  });
}

export const beliefDefects: readonly WrongEngine[] = [
  {
    defect: "an acquire reports a longer life than the grant has",
    law: "L19.1",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: async (claim, call) => twice(await inner.tryAcquire(claim, call)),
      }),
  },
  {
    defect: "a repeated acquire reports a longer life than the grant has",
    law: "L19.2",
    overlay: (inner) => doublesRepeats(inner, "tryAcquire"),
  },
  {
    defect: "a renewal reports a longer life than the grant has",
    law: "L19.3",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) => (await inner.renew(refs, call)).map(twice),
      }),
  },
  {
    defect:
      "a renewal that comes too late is confirmed with the ttl it asked for, and changes nothing",
    law: "L19.3",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) =>
          (await inner.renew(refs, call)).map((answer, i) =>
            answer.kind === "renewed" ? { ...answer, ttlMs: refs[i]!.ttlMs } : answer,
          ),
      }),
  },
  {
    defect: "an enqueue reports a longer life than the grant has",
    law: "L19.4",
    overlay: (inner) =>
      alteredQueue(inner, {
        enqueue: async (claim, call) => twice(await inner.queue!.enqueue(claim, call)),
      }),
  },
  {
    defect: "a heartbeat reports the whole ttl although only a part of it is left",
    law: "L19.5",
    overlay: (inner) =>
      alteredQueue(inner, {
        heartbeat: async (waiters, call) =>
          (await inner.queue!.heartbeat(waiters, call)).map(twice),
      }),
  },
  {
    defect: "a push reports a longer life than the grant has",
    law: "L19.6",
    overlay: (inner) =>
      alteredQueue(inner, {
        onGrant: (listener) =>
          inner.queue!.onGrant((ref, granted) => listener(ref, twice(granted))),
      }),
  },
  {
    defect: "a withdrawal that finds a grant reports a longer life than it has",
    law: "L19.7",
    overlay: (inner) =>
      alteredQueue(inner, {
        withdraw: async (waiter, call) => twice(await inner.queue!.withdraw(waiter, call)),
      }),
  },
  {
    defect: "an enqueue repeated at its turn reports a longer life than the grant has",
    law: "L19.8",
    overlay: (inner) => doublesRepeats(inner, "enqueue"),
  },
  {
    defect: "a heartbeat during a release reports a longer life than the grant has",
    law: "L19.9",
    overlay: (inner) =>
      alteredQueue(inner, {
        heartbeat: async (waiters, call) =>
          (await inner.queue!.heartbeat(waiters, call)).map(twice),
      }),
  },
  {
    defect: "a lease granted by push is believed for longer than it is kept",
    law: "L19.10",
    overlay: (inner) =>
      alteredQueue(inner, {
        onGrant: (listener) =>
          inner.queue!.onGrant((ref, granted) => listener(ref, twice(granted))),
      }),
  },
  {
    defect: "the renewal of a handed-over lease is believed for longer than it is kept",
    law: "L19.11",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) => (await inner.renew(refs, call)).map(twice),
      }),
  },
  {
    defect: "a shorter renewal is carried out, and answered with the longer ttl before it",
    law: "L19.12",
    overlay: (inner) => {
      let longest = 0;
      return altered(inner, {
        renew: async (refs, call) =>
          (await inner.renew(refs, call)).map((answer) => {
            if (answer.kind !== "renewed") return answer;
            longest = Math.max(longest, answer.ttlMs);
            return { ...answer, ttlMs: longest };
          }),
      });
    },
  },
];
