import { setTimeout as sleep } from "node:timers/promises";
import { hangFault } from "../../../../test-support/torture/faults.fixture.js";
import type { Place } from "../../../../test-support/torture/place.fixture.js";
import { TestQuorum } from "./test-quorum.fixture.js";

const NODES = 5;
const TTL_MS = 1_000;
/** Renewals ask for twice the ttl now and then; lock-delay comes on top. */
const MAX_TTL_MS = 2_500;

/** Five nodes. One at a time hangs, or forgets everything and goes into quarantine. */
export async function quorumPlace(): Promise<Place> {
  const quorum = await TestQuorum.start(NODES, { maxTtlMs: MAX_TTL_MS });
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: false, lockDelay: true },
    url: () => quorum.url,
    directUrl: quorum.url,
    faults: [
      hangFault((random) => quorum.servers[random(NODES)]!, TTL_MS * 1.5),
      {
        name: "node emptied",
        inflict: async (random) => {
          const node = random(NODES);
          // Emptied before the restart, so that it is known what the node forgets.
          await quorum.empty(node);
          await quorum.servers[node]!.restart();
          await sleep(MAX_TTL_MS + 500);
        },
      },
      {
        name: "connections cut",
        inflict: async (random) => {
          const admin = quorum.admins[random(NODES)]!;
          await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
        },
      },
    ],
    truth: (resource) => quorum.truth(resource),
    [Symbol.asyncDispose]: () => quorum[Symbol.asyncDispose](),
  };
}
