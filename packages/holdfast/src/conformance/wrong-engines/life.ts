import { systemClock } from "../../core/runtime/clock.js";
import type { Claim } from "../../engine.js";
import { altered, alteredQueue, memoryGrantOf, type WrongEngine } from "./altered.js";

const LONG_MS = 1e9;

export const lifeDefects: readonly WrongEngine[] = [
  {
    defect: "grants end before they should",
    law: "L4.1",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire({ ...claim, ttlMs: claim.ttlMs / 2 }, call);
          return answer.kind === "granted" ? { ...answer, ttlMs: claim.ttlMs } : answer;
        },
      }),
  },
  {
    defect: "grants never end",
    law: "L4.2",
    overlay: (inner) =>
      altered(inner, {
        tryAcquire: (claim, call) =>
          inner.tryAcquire({ ...claim, ttlMs: claim.ttlMs + LONG_MS }, call),
      }),
  },
  {
    defect: "a renewal is confirmed and changes nothing",
    law: "L4.3",
    overlay: (inner, store) =>
      altered(inner, {
        async renew(refs, call) {
          const ends = refs.map((ref) => memoryGrantOf(store, ref)?.expiresAt);
          const answers = await inner.renew(refs, call);
          for (const [i, ref] of refs.entries()) {
            const grant = memoryGrantOf(store, ref);
            if (grant) grant.expiresAt = ends[i]!;
          }
          return answers;
        },
      }),
  },
  {
    defect: "validity counts from the receipt",
    law: "L4.9",
    overlay: (inner) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          return answer.kind === "granted" ? { ...answer, since: systemClock.now() } : answer;
        },
      }),
  },
  {
    defect: "a renewal's validity counts from the receipt",
    law: "L4.10",
    overlay: (inner) =>
      altered(inner, {
        async renew(refs, call) {
          const answers = await inner.renew(refs, call);
          return answers.map((answer) =>
            answer.kind === "renewed" ? { ...answer, since: systemClock.now() } : answer,
          );
        },
      }),
  },
  {
    defect: "an enqueue's validity counts from the receipt",
    law: "L4.12",
    overlay: (inner) =>
      alteredQueue(inner, {
        async enqueue(claim, call) {
          const answer = await inner.queue!.enqueue(claim, call);
          return answer.kind === "granted" ? { ...answer, since: systemClock.now() } : answer;
        },
      }),
  },
  {
    defect: "a repeated acquire is promised a fresh ttl that the backend does not give",
    law: "L4.11",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const end = memoryGrantOf(store, claim)?.expiresAt;
          const answer = await inner.tryAcquire(claim, call);
          const grant = memoryGrantOf(store, claim);
          if (grant && end !== undefined) grant.expiresAt = end;
          return answer;
        },
      }),
  },
  {
    defect: "a heartbeat promises a fresh ttl that the backend does not give",
    law: "L4.14",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        async heartbeat(refs, call) {
          const ends = refs.map((ref) => memoryGrantOf(store, ref)?.expiresAt);
          const answers = await inner.queue!.heartbeat(refs, call);
          for (const [i, ref] of refs.entries()) {
            const grant = memoryGrantOf(store, ref);
            if (grant && ends[i] !== undefined) grant.expiresAt = ends[i];
          }
          return answers;
        },
      }),
  },
  {
    defect: "a pushed grant counts from its arrival, which may be late",
    law: "L4.14",
    overlay: (inner) =>
      alteredQueue(inner, {
        onGrant: (listener) =>
          inner.queue!.onGrant((ref, granted) =>
            listener(ref, { ...granted, since: granted.since + 50 }),
          ),
      }),
  },
  {
    defect: "a grant found by withdrawing counts from the receipt",
    law: "L4.15",
    overlay: (inner) =>
      alteredQueue(inner, {
        async withdraw(ref, call) {
          const answer = await inner.queue!.withdraw(ref, call);
          return answer.kind === "granted" ? { ...answer, since: systemClock.now() } : answer;
        },
      }),
  },
  {
    defect: "a renewal revives an expired grant that nobody replaced",
    law: "L5.1",
    overlay: (inner) => {
      const claims = new Map<string, Claim>();
      return altered(inner, {
        tryAcquire(claim, call) {
          claims.set(claim.grantId, claim);
          return inner.tryAcquire(claim, call);
        },
        async renew(refs, call) {
          for (const ref of refs) {
            const claim = claims.get(ref.grantId);
            if (claim) await inner.tryAcquire(claim, call);
          }
          return inner.renew(refs, call);
        },
      });
    },
  },
  {
    defect: "a renewal ignores a revocation",
    law: "L5.3",
    overlay: (inner, store) =>
      altered(inner, {
        renew(refs, call) {
          for (const ref of refs) {
            const grant = memoryGrantOf(store, ref);
            if (grant) grant.revoked = false;
          }
          return inner.renew(refs, call);
        },
      }),
  },
  {
    defect: "a revoked holder is told that it expired",
    law: "L5.3",
    overlay: (inner) =>
      altered(inner, {
        async renew(refs, call) {
          const answers = await inner.renew(refs, call);
          return answers.map((answer) =>
            answer.kind === "gone" ? { ...answer, why: "expired" } : answer,
          );
        },
      }),
  },
  {
    defect: "a batch of renewals is answered in another order",
    law: "L5.6",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) => (await inner.renew(refs, call)).toReversed(),
      }),
  },
  {
    defect: "a batch of renewals gives everybody the first one's ttl",
    law: "L5.6",
    overlay: (inner) =>
      altered(inner, {
        renew: (refs, call) =>
          inner.renew(
            refs.map((ref) => ({ ...ref, ttlMs: refs[0]!.ttlMs })),
            call,
          ),
      }),
  },
  {
    defect: "a connection that comes back has lost its grants",
    law: "L5.11",
    overlay: (inner) => {
      let wasCut = false;
      return altered(inner, {
        async renew(refs, call) {
          try {
            const answers = await inner.renew(refs, call);
            return wasCut ? refs.map(() => ({ kind: "gone", why: "unknown" })) : answers;
          } catch (error) {
            wasCut = true;
            throw error;
          }
        },
      });
    },
  },
  {
    defect: "a life counts on while the connection is cut",
    law: "L5.12",
    overlay: (inner) =>
      altered(inner, {
        async renew(refs, call) {
          try {
            return await inner.renew(refs, call);
          } catch {
            return refs.map(({ ttlMs }) => ({ kind: "renewed", since: call.startedAt, ttlMs }));
          }
        },
      }),
  },
];
