import type { Claim, Granted } from "../../engine.js";
import {
  altered,
  alteredQueue,
  memoryGrantOf,
  memoryGrantsOf,
  type WrongEngine,
} from "./altered.js";

export const ownershipDefects: readonly WrongEngine[] = [
  {
    defect: "releases without checking the holder",
    law: "L3.1",
    overlay: (inner, store) =>
      altered(inner, {
        release: (refs, call) =>
          inner.release(
            refs.map((ref) => {
              const [grant] = memoryGrantsOf(store, ref.resource);
              return { ...ref, grantId: grant?.claim.grantId ?? ref.grantId };
            }),
            call,
          ),
      }),
  },
  {
    defect: "renews the current holder, whoever asks",
    law: "L3.2",
    overlay: (inner, store) =>
      altered(inner, {
        renew: (refs, call) =>
          inner.renew(
            refs.map((ref) => {
              const [grant] = memoryGrantsOf(store, ref.resource);
              return { ...ref, grantId: grant?.claim.grantId ?? ref.grantId };
            }),
            call,
          ),
      }),
  },
  {
    defect: "remembers its own grants and answers repeats from memory",
    law: "L3.3",
    overlay: (inner) => {
      const given = new Map<string, Granted>();
      return altered(inner, {
        async tryAcquire(claim, call) {
          const known = given.get(claim.grantId);
          if (known) return { ...known, since: call.startedAt };
          const answer = await inner.tryAcquire(claim, call);
          if (answer.kind === "granted") given.set(claim.grantId, answer);
          return answer;
        },
      });
    },
  },
  {
    defect: "finds grants by grantId alone, on whatever resource",
    law: "L3.5",
    overlay: (inner, store) =>
      altered(inner, {
        release: (refs, call) =>
          inner.release(
            refs.map((ref) => {
              for (const [resource, records] of store.resources) {
                if (records.grants.has(ref.grantId)) return { ...ref, resource };
              }
              return ref;
            }),
            call,
          ),
      }),
  },
  {
    defect: "a withdrawal of an expired holder ends the current grant",
    law: "L3.6",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        async withdraw(ref, call) {
          if (!memoryGrantOf(store, ref)) {
            for (const { claim } of memoryGrantsOf(store, ref.resource)) {
              store.end(ref.resource, claim.grantId, call.startedAt);
            }
          }
          return inner.queue!.withdraw(ref, call);
        },
      }),
  },
  {
    defect: "says released, whatever there was",
    law: "L8.1",
    overlay: (inner) =>
      altered(inner, {
        async release(refs, call) {
          await inner.release(refs, call);
          return refs.map(() => ({ kind: "released" }));
        },
      }),
  },
  {
    defect: "the release of a waiter does nothing",
    law: "L8.4",
    overlay: (inner, store) =>
      altered(inner, {
        async release(refs, call) {
          const waits = refs.some((ref) => store.position(ref.resource, ref.grantId) >= 0);
          return waits ? refs.map(() => ({ kind: "released" })) : inner.release(refs, call);
        },
      }),
  },
  {
    defect: "the release of one reader releases them all",
    law: "L8.6",
    overlay: (inner, store) =>
      altered(inner, {
        async release(refs, call) {
          const answers = await inner.release(refs, call);
          for (const { resource } of refs) {
            for (const { claim } of memoryGrantsOf(store, resource)) {
              if (claim.mode === "shared") store.end(resource, claim.grantId, call.startedAt);
            }
          }
          return answers;
        },
      }),
  },
  {
    defect: "answers a batch of releases in its own order",
    law: "L8.5",
    overlay: (inner) =>
      altered(inner, {
        release: async (refs, call) => {
          const answers = await inner.release(refs, call);
          return answers.toSorted((a, b) => a.kind.localeCompare(b.kind));
        },
      }),
  },
  {
    defect: "a second acquire with the same grantId makes a second grant",
    law: "L7.3",
    overlay: (inner) => {
      const seen = new Set<string>();
      return altered(inner, {
        tryAcquire(claim, call) {
          const again = seen.has(claim.grantId);
          seen.add(claim.grantId);
          const fresh: Claim = { ...claim, grantId: `${claim.grantId}-${seen.size}` };
          return inner.tryAcquire(again ? fresh : claim, call);
        },
      });
    },
  },
  {
    defect: "a repeated acquire gets another token",
    law: "L7.1",
    overlay: (inner) => {
      const seen = new Set<string>();
      return altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          const again = seen.has(claim.grantId);
          seen.add(claim.grantId);
          return answer.kind === "granted" && again
            ? { ...answer, token: answer.token + 1n }
            : answer;
        },
      });
    },
  },
  {
    defect: "a repeated acquire is blocked by its own grant",
    law: "L7.1",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          if (memoryGrantOf(store, claim)) return { kind: "busy", holders: [] };
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "a repeated enqueue goes to the end of the queue",
    law: "L7.5",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          if (store.position(claim.resource, claim.grantId) >= 0) {
            store.end(claim.resource, claim.grantId, call.startedAt);
          }
          return inner.queue!.enqueue(claim, call);
        },
      }),
  },
  {
    defect: "a repeated acquire undoes a revocation",
    law: "L7.9",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          const grant = memoryGrantOf(store, claim);
          if (grant) grant.revoked = false;
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "a repeated acquire counts its own ttl again, though a longer one was renewed",
    law: "L7.10",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          const grant = memoryGrantOf(store, claim);
          if (grant) grant.expiresAt = call.startedAt + claim.ttlMs;
          return answer;
        },
      }),
  },
];
