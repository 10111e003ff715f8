import type { Claim } from "../../engine.js";
import type { MemoryStore } from "../../engines/memory/store.js";
import { altered, alteredQueue, memoryGrantsOf, type WrongEngine } from "./altered.js";

const CROWD = 5;

/** As much work for each entry as reading a record costs a server. */
function read(records: Iterable<unknown>): void {
  for (const record of records) JSON.stringify(record, (_, value) => String(value));
}

function waitersOf(store: MemoryStore, { resource }: Claim): string[] {
  return [...(store.resources.get(resource)?.queue ?? [])].map(({ claim }) => claim.grantId);
}

export const costDefects: readonly WrongEngine[] = [
  ...["L23.1", "L23.2"].map(
    (law): WrongEngine => ({
      defect: "a claim reads everybody who waits",
      law,
      overlay: (inner, store) =>
        alteredQueue(inner, {
          enqueue: (claim, call) => {
            read(waitersOf(store, claim));
            return inner.queue!.enqueue(claim, call);
          },
        }),
    }),
  ),
  {
    defect: "a shared claim reads everybody who holds",
    law: "L23.3",
    overlay: (inner, store) =>
      altered(inner, {
        tryAcquire: (claim, call) => {
          read(memoryGrantsOf(store, claim.resource).map(({ token }) => token));
          return inner.tryAcquire(claim, call);
        },
      }),
  },
  {
    defect: "behind a crowd, grants of other resources are dropped",
    law: "L23.4",
    overlay: (inner, store) =>
      alteredQueue(inner, {
        enqueue: (claim, call) => {
          if (waitersOf(store, claim).length >= CROWD) {
            for (const [name, { grants }] of store.resources) {
              if (name !== claim.resource) grants.clear();
            }
          }
          return inner.queue!.enqueue(claim, call);
        },
      }),
  },
];
