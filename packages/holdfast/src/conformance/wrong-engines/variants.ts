import type { Engine, Failed, Gone, Renewed, RenewRef } from "../../engine.js";
import type { MemoryGrant, MemoryStore } from "../../engines/memory/store.js";
import {
  altered,
  alteredQueue,
  memoryGrantOf,
  memoryGrantsOf,
  type WrongEngine,
} from "./altered.js";

// Each of these engines treats most grants correctly. It is wrong in one mode, for one index, at
// one place of a batch, by one verb or for one ttl. A law that asks in one way only does not
// notice.

type Answer = Renewed | Gone | Failed;
type Which = (grant: MemoryGrant, ref: RenewRef, i: number) => boolean;

/** Renews one by one, so that a defect can hit some entries of a batch. */
async function each(
  refs: readonly RenewRef[],
  renew: (ref: RenewRef, i: number) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const [i, ref] of refs.entries()) answers.push(await renew(ref, i));
  return answers;
}

/** Answers "renewed" for a live grant, and does not move its expiry. */
function onlyAnswers(inner: Engine, store: MemoryStore, which: Which): Engine {
  return altered(inner, {
    renew: (refs, call) =>
      each(refs, async (ref, i) => {
        const grant = memoryGrantOf(store, ref);
        const before = grant && { ...grant };
        const [answer] = await inner.renew([ref], call);
        if (grant !== undefined && which(grant, ref, i)) {
          const { since, ttlMs, expiresAt } = before!;
          Object.assign(grant, { since, ttlMs, expiresAt });
        }
        return answer!;
      }),
  });
}

/** Forgets the order of earlier renewals, so that a late one is carried out. */
function forgetsOrder(inner: Engine, store: MemoryStore, which: Which): Engine {
  return altered(inner, {
    renew: (refs, call) =>
      each(refs, async (ref, i) => {
        const grant = memoryGrantOf(store, ref);
        if (grant !== undefined && which(grant, ref, i)) grant.order = 0;
        const [answer] = await inner.renew([ref], call);
        return answer!;
      }),
  });
}

/** An enqueue ends the grants that are in its way. */
function enqueueEnds(
  inner: Engine,
  store: MemoryStore,
  which: (grant: MemoryGrant, now: number) => boolean,
): Engine {
  return alteredQueue(inner, {
    enqueue: (claim, call) => {
      for (const grant of memoryGrantsOf(store, claim.resource)) {
        const { grantId } = grant.claim;
        if (grantId === claim.grantId || !which(grant, call.startedAt)) continue;
        store.end(claim.resource, grantId, call.startedAt);
      }
      return inner.queue!.enqueue(claim, call);
    },
  });
}

const isShared = ({ claim }: MemoryGrant) => claim.mode === "shared";

export const variantDefects: readonly WrongEngine[] = [
  {
    defect: "a batch is answered as renewed, but only its first three grants are renewed",
    law: "L19.13",
    overlay: (inner, store) => onlyAnswers(inner, store, (_grant, _ref, i) => i >= 3),
  },
  {
    defect: "a batch is recorded with the first one's ttl, and answered with each one's own",
    law: "L19.13",
    overlay: (inner) =>
      altered(inner, {
        async renew(refs, call) {
          const { ttlMs } = refs[0] ?? { ttlMs: 0 };
          const alike = refs.map((ref) => ({ ...ref, ttlMs }));
          return (await inner.renew(alike, call)).map((answer, i) =>
            answer.kind === "renewed" ? { ...answer, ttlMs: refs[i]!.ttlMs } : answer,
          );
        },
      }),
  },
  {
    defect: "all but the first grant of a batch count from one second too late",
    law: "L19.13",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) =>
          (await inner.renew(refs, call)).map((answer, i) =>
            i > 0 && answer.kind === "renewed"
              ? { ...answer, since: answer.since + 1_000 }
              : answer,
          ),
      }),
  },
  {
    defect: "a renewal that comes too late is recognised in the first entry of a batch only",
    law: "L5.16",
    overlay: (inner, store) => forgetsOrder(inner, store, (_grant, _ref, i) => i > 0),
  },
  {
    defect: "a shared grant's renewal is answered and not carried out",
    law: "L19.3",
    overlay: (inner, store) => onlyAnswers(inner, store, isShared),
  },
  {
    defect: "the renewal of a lease that was handed over is answered and not carried out",
    law: "L19.3",
    overlay: (inner, store) => onlyAnswers(inner, store, (_grant, { index = 0 }) => index > 0),
  },
  ...["L5.13", "L5.14", "L5.15"].map(
    (law): WrongEngine => ({
      defect: "a renewal that comes too late is carried out on a shared grant",
      law,
      overlay: (inner, store) => forgetsOrder(inner, store, isShared),
    }),
  ),
  {
    defect: "an acquire that arrives once more shortens a shared grant",
    law: "L7.10",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const grant = memoryGrantOf(store, claim);
          const answer = await inner.tryAcquire(claim, call);
          if (grant !== undefined && isShared(grant)) {
            grant.expiresAt = Math.min(grant.expiresAt, call.startedAt + claim.ttlMs);
          }
          return answer;
        },
      }),
  },
  {
    defect: "a push reports twice the life that is kept to a reader",
    law: "L19.6",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        onGrant: (listener) =>
          inner.queue!.onGrant((ref, granted) => {
            const grant = memoryGrantOf(store, ref);
            const times = grant !== undefined && isShared(grant) ? 2 : 1;
            listener(ref, { ...granted, ttlMs: granted.ttlMs * times });
          }),
      }),
  },
  {
    defect: "a grant that was left lets readers in",
    law: "L4.19",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire(claim, call) {
          for (const { left, claim: kept } of memoryGrantsOf(store, claim.resource)) {
            const ends = left && claim.mode === "shared";
            if (ends) store.end(claim.resource, kept.grantId, call.startedAt);
          }
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "a grant that was left does not keep out an enqueue",
    law: "L4.19",
    overlay: (inner, store) => enqueueEnds(inner, store, ({ left }) => left),
  },
  {
    defect: "a revoked holder does not keep out an enqueue",
    law: "L18.6",
    overlay: (inner, store) => enqueueEnds(inner, store, ({ revoked }) => revoked),
  },
  {
    defect: "an enqueue within a lock-delay is granted",
    law: "L17.1",
    overlay: (inner, store) => enqueueEnds(inner, store, ({ expiresAt }, now) => expiresAt <= now),
  },
  {
    defect: "a forced revocation by any token of the range ends the grant",
    law: "L18.13",
    overlay: (inner, store) =>
      altered(inner, {
        revoke(ref, call) {
          const hit = memoryGrantsOf(store, ref.resource).find(
            ({ token, claim }) => ref.token >= token && ref.token < token + BigInt(claim.tokens),
          );
          if (!ref.force || hit === undefined) return inner.revoke(ref, call);
          return inner.revoke({ ...ref, token: hit.token + BigInt(hit.index) }, call);
        },
      }),
  },
  {
    defect: "a long ttl is kept for one second",
    law: "L19.1",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          const grant = memoryGrantOf(store, claim);
          if (grant && claim.ttlMs > 200_000) grant.expiresAt = call.startedAt + 1_000;
          return answer;
        },
      }),
  },
];
