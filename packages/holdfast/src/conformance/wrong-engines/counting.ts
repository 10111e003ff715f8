import type { Claim } from "../../engine.js";
import { UsageError } from "../../errors.js";
import { altered, alteredQueue, memoryGrantsOf, type WrongEngine } from "./altered.js";
import type { Overlay } from "./memory-harness.js";

/** Grants although the backend said busy, like an engine whose condition has a hole. */
function alsoGrants(hole: (claim: Claim) => boolean): Overlay {
  return (inner) =>
    altered(inner, {
      async tryAcquire(claim, call) {
        const answer = await inner.tryAcquire(claim, call);
        if (answer.kind !== "busy" || !hole(claim)) return answer;
        const { ttlMs, tokens } = claim;
        return { kind: "granted", token: 1_000_000n, tokens, since: call.startedAt, ttlMs };
      },
    });
}

function looser(claim: Claim): Claim {
  return claim.limit === null ? claim : { ...claim, limit: claim.limit + 1 };
}

export const countingDefects: readonly WrongEngine[] = [
  {
    defect: "an exclusive claim gets past an exclusive holder",
    law: "L1.1",
    overlay: alsoGrants((claim) => claim.mode === "exclusive"),
  },
  {
    defect: "a client's own second claim gets past its first",
    law: "L1.2",
    overlay: (inner, store) => {
      const mine = new Set<string>();
      return altered(inner, {
        async tryAcquire(claim, call) {
          const [grant] = memoryGrantsOf(store, claim.resource);
          const own = grant !== undefined && mine.has(grant.claim.grantId);
          mine.add(claim.grantId);
          return inner.tryAcquire(own ? { ...claim, grantId: grant.claim.grantId } : claim, call);
        },
      });
    },
  },
  {
    defect: "a shared claim gets past an exclusive holder",
    law: "L1.3",
    overlay: alsoGrants((claim) => claim.mode === "shared" && claim.limit === null),
  },
  {
    defect: "an exclusive claim gets past shared holders",
    law: "L1.4",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          const grants = memoryGrantsOf(store, claim.resource);
          const readers =
            grants.length > 0 && grants.every((grant) => grant.claim.mode === "shared");
          return inner.tryAcquire(readers ? { ...claim, mode: "shared" } : claim, call);
        },
      }),
  },
  {
    defect: "an enqueue is granted at once although others hold",
    law: "L1.5",
    overlay: (inner) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          const answer = await inner.queue!.enqueue(claim, call);
          if (answer.kind !== "queued") return answer;
          const { ttlMs, tokens } = claim;
          return { kind: "granted", token: 1_000_000n, tokens, since: call.startedAt, ttlMs };
        },
      }),
  },
  {
    defect: "claims that come together are all granted",
    law: "L1.8",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          // Check, wait for the answer, then take: the classic mistake.
          const free = memoryGrantsOf(store, claim.resource).length === 0;
          await new Promise<void>((go) => setImmediate(go));
          if (!free) return inner.tryAcquire(claim, call);
          const answer = await inner.tryAcquire({ ...claim, mode: "shared" }, call);
          return answer;
        },
      }),
  },
  {
    defect: "the limit is off by one",
    law: "L2.2",
    overlay: (inner) =>
      altered(inner, { tryAcquire: (claim, call) => inner.tryAcquire(looser(claim), call) }),
  },
  {
    defect: "an expired permit is never free again",
    law: "L2.4",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) =>
          inner.tryAcquire(claim.mode === "shared" ? { ...claim, lockDelayMs: 1e9 } : claim, call),
      }),
  },
  {
    defect: "another limit is taken for the one in use",
    law: "L2.6",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          const [first] = memoryGrantsOf(store, claim.resource);
          const limit = first && claim.mode === "shared" ? first.claim.limit : claim.limit;
          return inner.tryAcquire({ ...claim, limit }, call);
        },
      }),
  },
  {
    defect: "another limit is answered with busy",
    law: "L2.6",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          try {
            return await inner.tryAcquire(claim, call);
          } catch (error) {
            if (error instanceof UsageError) return { kind: "busy", holders: [] };
            throw error;
          }
        },
      }),
  },
  {
    defect: "another limit is refused without a word about which",
    law: "L2.6",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          try {
            return await inner.tryAcquire(claim, call);
          } catch (error) {
            if (error instanceof UsageError) throw new UsageError("wrong limit");
            throw error;
          }
        },
      }),
  },
  {
    defect: "waiters are let in one beyond their limit",
    law: "L2.11",
    overlay: (inner) =>
      alteredQueue(inner, {
        enqueue: (claim, call) => inner.queue!.enqueue(looser(claim), call),
      }),
  },
];
