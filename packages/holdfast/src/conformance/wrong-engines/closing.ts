import { EngineError } from "../../errors.js";
import {
  altered,
  alteredQueue,
  memoryGrantOf,
  memoryGrantsOf,
  type WrongEngine,
} from "./altered.js";

const poisoned = new Set<string>();

export const delayDefects: readonly WrongEngine[] = [
  {
    defect: "the lock-delay is ignored",
    law: "L17.1",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) => inner.tryAcquire({ ...claim, lockDelayMs: 0 }, call),
      }),
  },
  {
    defect: "the lock-delay follows a release too",
    law: "L17.2",
    overlay: (inner, store) =>
      altered(inner, {
        async release(refs, call) {
          for (const ref of refs) {
            const grant = memoryGrantOf(store, ref);
            if (!grant?.claim.lockDelayMs) continue;
            grant.expiresAt = call.startedAt;
            return [{ kind: "released" }];
          }
          return inner.release(refs, call);
        },
      }),
  },
  {
    defect: "a late release ends the lock-delay",
    law: "L17.3",
    overlay: (inner, store) =>
      altered(inner, {
        async release(refs, call) {
          const answers = await inner.release(refs, call);
          for (const { resource, grantId } of refs) store.end(resource, grantId, call.startedAt);
          return answers;
        },
      }),
  },
  {
    defect: "a late renewal ends the lock-delay",
    law: "L17.4",
    overlay: (inner, store) =>
      altered(inner, {
        async renew(refs, call) {
          const answers = await inner.renew(refs, call);
          for (const [i, { resource, grantId }] of refs.entries()) {
            if (answers[i]!.kind === "gone") store.end(resource, grantId, call.startedAt);
          }
          return answers;
        },
      }),
  },
  {
    defect: "the late holder may come back within its lock-delay",
    law: "L17.5",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          const own = memoryGrantOf(store, claim);
          if (own && own.expiresAt <= call.startedAt) own.expiresAt = call.startedAt + claim.ttlMs;
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "readers are let in within a writer's lock-delay",
    law: "L17.6",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          for (const grant of memoryGrantsOf(store, claim.resource)) {
            const over = grant.expiresAt <= call.startedAt;
            if (over && claim.mode === "shared") {
              store.end(claim.resource, grant.claim.grantId, call.startedAt);
            }
          }
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "writers are let in within a reader's lock-delay",
    law: "L17.7",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) =>
          inner.tryAcquire(claim.mode === "shared" ? { ...claim, lockDelayMs: 0 } : claim, call),
      }),
  },
  {
    defect: "waiters are let in within the lock-delay",
    law: "L17.8",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        heartbeat(refs, call) {
          for (const { resource } of refs) {
            for (const { claim, expiresAt } of memoryGrantsOf(store, resource)) {
              if (expiresAt <= call.startedAt) store.end(resource, claim.grantId, call.startedAt);
            }
          }
          return inner.queue!.heartbeat(refs, call);
        },
      }),
  },
  {
    defect: "a claim repeated within its lock-delay is an error",
    law: "L17.13",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const own = memoryGrantOf(store, claim);
          if (own && own.expiresAt <= call.startedAt) throw new Error("duplicate key");
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "a claim repeated within its lock-delay fails the next release",
    law: "L17.14",
    overlay: (inner, store) => ({
      ...alteredQueue(inner, {
        enqueue(claim, call) {
          const own = memoryGrantOf(store, claim);
          if (own && own.expiresAt <= call.startedAt) poisoned.add(claim.resource);
          return inner.queue!.enqueue(claim, call);
        },
      }),
      release: async (refs, call) => {
        const error = new EngineError("duplicate key", { effect: "none", retryable: false });
        if (!refs.some(({ resource }) => poisoned.has(resource))) return inner.release(refs, call);
        return refs.map(() => ({ kind: "failed", effect: "none", error }));
      },
    }),
  },
  {
    defect: "check is always true",
    law: "L18.1",
    overlay: (inner) => altered(inner, { check: async () => true }),
  },
  {
    defect: "check ignores the mode",
    law: "L18.1",
    overlay: (inner) =>
      altered(inner, {
        check: async (sequence, call) =>
          (await inner.check({ ...sequence, mode: "exclusive" }, call)) ||
          (await inner.check({ ...sequence, mode: "shared" }, call)),
      }),
  },
  {
    defect: "check ignores expiry",
    law: "L18.2",
    overlay: (inner, store) =>
      altered(inner, {
        check: async ({ resource, token }) =>
          memoryGrantsOf(store, resource).some((grant) => grant.token === token),
      }),
  },
  {
    defect: "check knows the first token of a range only",
    law: "L18.3",
    overlay: (inner, store) =>
      altered(inner, {
        check: async (sequence, call) =>
          memoryGrantsOf(store, sequence.resource).some(({ token }) => token === sequence.token) &&
          inner.check(sequence, call),
      }),
  },
  {
    defect: "check ignores revocations",
    law: "L18.6",
    overlay: (inner, store) =>
      altered(inner, {
        check: async ({ resource, token }) =>
          memoryGrantsOf(store, resource).some((grant) => grant.token === token),
      }),
  },
  {
    defect: "a revocation ends the grant at once, without force",
    law: "L18.6",
    overlay: (inner) =>
      altered(inner, { revoke: (ref, call) => inner.revoke({ ...ref, force: true }, call) }),
  },
  {
    defect: "a forced revocation waits like any other",
    law: "L18.10",
    overlay: (inner) =>
      altered(inner, { revoke: (ref, call) => inner.revoke({ ...ref, force: false }, call) }),
  },
  {
    defect: "a revocation hits the current holder",
    law: "L18.9",
    overlay: (inner, store) =>
      altered(inner, {
        revoke(ref, call) {
          const token = memoryGrantsOf(store, ref.resource)[0]?.token ?? ref.token;
          return inner.revoke({ ...ref, token }, call);
        },
      }),
  },
  {
    defect: "a revocation of a token that nobody holds is answered with revoked",
    law: "L18.9",
    overlay: (inner) =>
      altered(inner, {
        async revoke(ref, call) {
          await inner.revoke(ref, call);
          return "revoked";
        },
      }),
  },
  {
    defect: "a revocation tells nobody",
    law: "L18.15",
    overlay: (inner) => altered(inner, { watch: { onChange: () => () => {} } }),
  },
  {
    defect: "a waiter is given a grant that was revoked before",
    law: "L18.16",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        heartbeat(refs, call) {
          for (const ref of refs) {
            const grant = memoryGrantOf(store, ref);
            if (grant) grant.revoked = false;
          }
          return inner.queue!.heartbeat(refs, call);
        },
      }),
  },
];
