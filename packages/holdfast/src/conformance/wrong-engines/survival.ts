import type { Engine } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { altered, type WrongEngine } from "./altered.js";
import type { PretendedServers } from "./memory-harness.js";

/** Talks to only one of several servers. */
function loyalTo(server: number) {
  return (inner: Engine, _: unknown, { hung }: PretendedServers): Engine => {
    const reach = () => {
      if (!hung.has(server)) return;
      throw new EngineError("the server does not answer", { effect: "unknown", retryable: true });
    };
    return altered(inner, {
      tryAcquire: async (claim, call) => {
        reach();
        return inner.tryAcquire(claim, call);
      },
      renew: async (refs, call) => {
        reach();
        return inner.renew(refs, call);
      },
      queue: {
        ...inner.queue!,
        enqueue: async (claim, call) => {
          reach();
          return inner.queue!.enqueue(claim, call);
        },
      },
    });
  };
}

export const survivalDefects: readonly WrongEngine[] = [
  {
    defect: "it knows one server of several, and renews nothing while that one hangs",
    law: "L22.1",
    overlay: loyalTo(1),
  },
  {
    defect: "a grant is gone with the server that first answered",
    law: "L22.2",
    overlay: (inner, _, servers) =>
      altered(inner, {
        renew: async (refs, call) => {
          if (servers.restarts < 2) return inner.renew(refs, call);
          return refs.map(() => ({ kind: "gone", why: "expired" }));
        },
      }),
  },
  {
    defect: "a new client needs one particular server",
    law: "L22.3",
    overlay: loyalTo(2),
  },
];
