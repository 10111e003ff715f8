import { mintGrantId } from "../../core/holding/grant-id.js";
import type { Call, Engine } from "../../engine.js";
import {
  altered,
  alteredQueue,
  memoryGrantOf,
  memoryGrantsOf,
  type WrongEngine,
} from "./altered.js";

/** Applies renewals in the order of arrival. */
function byArrival(inner: Engine): Engine {
  let arrived = 1e9;
  const now = (call: Call) => ({ ...call, order: ++arrived });
  return altered(inner, { renew: (refs, call) => inner.renew(refs, now(call)) });
}

export const lateDefects: readonly WrongEngine[] = [
  ...["L5.13", "L5.14", "L21.5"].map((law) => ({
    defect: "renewals count in the order in which they arrive",
    law,
    overlay: byArrival,
  })),
  {
    defect: "a renewal that changes no ttl leaves no order behind",
    law: "L5.15",
    overlay: (inner, store) =>
      altered(inner, {
        renew: async (refs, call) => {
          const before = refs.map((ref) => memoryGrantOf(store, ref)?.order ?? 0);
          const lives = refs.map((ref) => memoryGrantOf(store, ref)?.ttlMs);
          const answers = await inner.renew(refs, call);
          for (const [i, ref] of refs.entries()) {
            const grant = memoryGrantOf(store, ref);
            if (grant !== undefined && lives[i] === ref.ttlMs) grant.order = before[i]!;
          }
          return answers;
        },
      }),
  },
  ...["L21.1", "L21.2"].map((law) => ({
    defect: "a release leaves no tombstone for what is still on its way",
    law,
    overlay: (inner: Engine) =>
      altered(inner, {
        release: (refs, call) =>
          inner.release(
            refs.map((ref) => ({ ...ref, tombstoneMs: 0 })),
            call,
          ),
      }),
  })),
  {
    defect: "a late acquire replaces the current holder",
    law: "L21.3",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire: async (claim, call) => {
          if (call.timeoutMs < 1_000) store.resources.get(claim.resource)?.grants.clear();
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "a release ends every grant of that name",
    law: "L21.4",
    overlay: (inner, store) =>
      altered(inner, {
        release: async (refs, call) => {
          for (const { resource } of refs) store.resources.get(resource)?.grants.clear();
          return inner.release(refs, call);
        },
      }),
  },
  {
    defect: "a renewal creates a gone grant again",
    law: "L21.6",
    overlay: (inner) =>
      altered(inner, {
        renew: async (refs, call) => {
          const answers = await inner.renew(refs, call);
          for (const [i, ref] of refs.entries()) {
            if (answers[i]!.kind !== "gone") continue;
            const terms = { mode: "exclusive", limit: null, lockDelayMs: 0, tokens: 1 } as const;
            await inner.tryAcquire({ ...ref, ...terms, label: "revived" }, call);
          }
          return answers;
        },
      }),
  },
  {
    defect: "a heartbeat of an unknown waiter joins the queue again",
    law: "L21.7",
    overlay: (inner) => {
      const known = new Map<string, Parameters<NonNullable<Engine["queue"]>["enqueue"]>[0]>();
      return alteredQueue(inner, {
        enqueue: (claim, call) => {
          known.set(claim.grantId, claim);
          return inner.queue!.enqueue(claim, call);
        },
        heartbeat: async (waiters, call) => {
          const answers = await inner.queue!.heartbeat(waiters, call);
          for (const [i, { grantId }] of waiters.entries()) {
            const claim = known.get(grantId);
            if (answers[i]!.kind !== "unknown" || claim === undefined) continue;
            await inner.queue!.enqueue({ ...claim, grantId: mintGrantId() }, call);
          }
          return answers;
        },
      });
    },
  },
  {
    defect: "a withdrawal ends the grant that it finds",
    law: "L21.8",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        withdraw: async (waiter, call) => {
          const answer = await inner.queue!.withdraw(waiter, call);
          store.end(waiter.resource, waiter.grantId, store.instant(call.startedAt));
          return answer;
        },
      }),
  },
  {
    defect: "a late revocation hits the current holder",
    law: "L21.9",
    overlay: (inner, store) =>
      altered(inner, {
        revoke: async (ref, call) => {
          const [grant] = memoryGrantsOf(store, ref.resource);
          return inner.revoke({ ...ref, token: grant?.token ?? ref.token }, call);
        },
      }),
  },
  {
    defect: "an acquire that arrives late takes back what its repeat was granted",
    law: "L21.10",
    overlay: (inner, store) => {
      const asked = new Set<string>();
      return altered(inner, {
        tryAcquire: async (claim, call) => {
          const isRepeat = memoryGrantOf(store, claim) !== undefined && !asked.has(claim.grantId);
          asked.add(claim.grantId);
          const answer = await inner.tryAcquire(claim, call);
          if (isRepeat) store.end(claim.resource, claim.grantId, store.instant(call.startedAt));
          return answer;
        },
      });
    },
  },
  {
    defect: "each of several simultaneous copies of a claim gets its own token",
    law: "L21.11",
    overlay: (inner) => {
      let extra = 0n;
      return altered(inner, {
        tryAcquire: async (claim, call) => {
          const answer = await inner.tryAcquire(claim, call);
          return answer.kind === "granted" ? { ...answer, token: answer.token + extra++ } : answer;
        },
      });
    },
  },
  {
    defect: "of overlapping renewals only the last one finds its grant",
    law: "L21.12",
    overlay: (inner) => {
      let latest = 0;
      return altered(inner, {
        renew: async (refs, call) => {
          latest = Math.max(latest, call.order);
          const answers = await inner.renew(refs, call);
          await new Promise((go) => setImmediate(go));
          if (call.order === latest) return answers;
          return answers.map(() => ({ kind: "gone", why: "expired" }));
        },
      });
    },
  },
  {
    defect: "a repeated release ends the next holder's grant",
    law: "L21.13",
    overlay: (inner, store) => {
      const released = new Set<string>();
      return altered(inner, {
        release: async (refs, call) => {
          for (const { resource, grantId } of refs) {
            if (released.has(grantId)) store.resources.get(resource)?.grants.clear();
            released.add(grantId);
          }
          return inner.release(refs, call);
        },
      });
    },
  },
  {
    defect: "a repeated enqueue gets a second place",
    law: "L21.14",
    overlay: (inner) => {
      const asked = new Set<string>();
      return alteredQueue(inner, {
        enqueue: (claim, call) => {
          const grantId = asked.has(claim.grantId) ? mintGrantId() : claim.grantId;
          asked.add(claim.grantId);
          return inner.queue!.enqueue({ ...claim, grantId }, call);
        },
      });
    },
  },
  {
    defect: "a repeated enqueue only reports its position",
    law: "L7.11",
    overlay: (inner) => {
      const places = new Map<string, number>();
      return alteredQueue(inner, {
        enqueue: async (claim, call) => {
          if (places.has(claim.grantId)) {
            return { kind: "queued", position: 0, nextHeartbeatMs: 1_000, holders: [] };
          }
          const answer = await inner.queue!.enqueue(claim, call);
          if (answer.kind === "queued") places.set(claim.grantId, answer.position);
          return answer;
        },
      });
    },
  },
  {
    defect: "any token of the range can be revoked",
    law: "L18.13",
    overlay: (inner, store) =>
      altered(inner, {
        revoke: async (ref, call) => {
          const found = memoryGrantsOf(store, ref.resource).find(
            ({ token, claim }) => ref.token >= token && ref.token < token + BigInt(claim.tokens),
          );
          if (found === undefined) return inner.revoke(ref, call);
          return inner.revoke({ ...ref, token: found.token + BigInt(found.index) }, call);
        },
      }),
  },
  ...["L18.20", "L18.21"].map((law) => ({
    defect: "the backend never learns which token is in use",
    law,
    overlay: (inner: Engine) =>
      altered(inner, {
        renew: (refs, call) =>
          inner.renew(
            refs.map((ref) => ({ ...ref, index: 0 })),
            call,
          ),
      }),
  })),
  {
    defect: "a grant that was left ends with its client",
    law: "L4.19",
    overlay: (inner, store) => {
      const ours = new Set<string>();
      return altered(inner, {
        tryAcquire: (claim, call) => {
          ours.add(claim.resource);
          return inner.tryAcquire(claim, call);
        },
        close: () => {
          for (const resource of ours) store.resources.delete(resource);
          return inner.close();
        },
      });
    },
  },
  {
    defect: "a grant that was left can be renewed by anybody who knows it",
    law: "L4.21",
    overlay: (inner) =>
      altered(inner, {
        renew: (refs, call) =>
          inner.renew(
            refs.map((ref) => ({ ...ref, leave: false })),
            call,
          ),
      }),
  },
];
