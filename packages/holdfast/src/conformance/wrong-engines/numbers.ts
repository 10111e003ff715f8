import type { Granted } from "../../engine.js";
import { altered, type WrongEngine } from "./altered.js";
import type { Overlay } from "./memory-harness.js";

/** Replaces the tokens that tryAcquire gives; everything else stays right. */
function numbered(
  renumber: (granted: Granted, grantId: string, resource: string) => bigint,
): Overlay {
  return (inner) =>
    altered(inner, {
      async tryAcquire(claim, call) {
        const answer = await inner.tryAcquire(claim, call);
        if (answer.kind !== "granted") return answer;
        return { ...answer, token: renumber(answer, claim.grantId, claim.resource) };
      },
    });
}

/** One counter for all clients of a law; tokens of an earlier law do no harm. */
let grants = 0n;
const given = new Map<string, bigint>();

export const numberDefects: readonly WrongEngine[] = [
  {
    defect: "a token repeats",
    law: "L6.1",
    overlay: numbered((granted) => granted.token / 2n + 1n),
  },
  {
    defect: "each client counts for itself",
    law: "L6.1",
    overlay: (inner, store, servers) => {
      let count = 0n;
      return numbered(() => ++count)(inner, store, servers);
    },
  },
  {
    defect: "the counter lives in the record that a release deletes",
    law: "L6.1",
    overlay: numbered(() => 1n),
  },
  {
    defect: "the token goes back after an expiry",
    law: "L6.2",
    overlay: (inner, store) => {
      let released = true;
      return altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          if (answer.kind !== "granted") return answer;
          const token = released || store.resources.size > 1 ? answer.token : 1n;
          released = false;
          return { ...answer, token };
        },
        release(refs, call) {
          released = true;
          return inner.release(refs, call);
        },
      });
    },
  },
  {
    defect: "readers that hold together share a token",
    law: "L6.4",
    overlay: (inner, store) =>
      altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          if (answer.kind !== "granted" || claim.mode === "exclusive") return answer;
          const [first] = store.resources.get(claim.resource)!.grants.values();
          return { ...answer, token: first!.token };
        },
      }),
  },
  {
    defect: "a range is promised and not reserved",
    law: "L6.5",
    overlay: numbered((_, grantId) => {
      if (!given.has(grantId)) given.set(grantId, ++grants);
      return given.get(grantId)!;
    }),
  },
  {
    defect: "tokens start again with every connection",
    law: "L6.8",
    overlay: (inner, store, servers) => {
      let first: bigint | null = null;
      return numbered(({ token }) => {
        first ??= token;
        return token - first + 1n;
      })(inner, store, servers);
    },
  },
  {
    defect: "tokens go back after a cut connection",
    law: "L6.9",
    overlay: (inner) => {
      // It continues from the number before the cut, although others were granted since.
      let known: bigint | null = null;
      return altered(inner, {
        async tryAcquire(claim, call) {
          const answer = await inner.tryAcquire(claim, call);
          if (answer.kind !== "granted") return answer;
          known = known === null ? answer.token : known + 1n;
          return { ...answer, token: known };
        },
      });
    },
  },
];
