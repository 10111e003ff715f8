import assert from "node:assert";
import type { Harness } from "../../../../conformance/index.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { traitsFor } from "../../engine.js";
import { resolveQuorum } from "../../options.js";
import type { TestQuorum } from "./test-quorum.fixture.js";

/** Long enough for every ttl and lock-delay that the laws use; nothing here waits for a quarantine. */
export const SETTINGS = { maxTtlMs: 300_000, nodeTimeoutMs: 2_000 } as const;
const NODES = 5;

/** The table of engines passes no quorum: it only asks which laws apply, and opens nothing. */
export function harness(quorum?: () => TestQuorum | null): Harness {
  const names = Array.from({ length: NODES }, (_, i) => `node-${i}`);
  // The table of engines hands in a folder, as to every harness.
  const found = () => (typeof quorum === "function" ? quorum() : null);
  const there = () => found() ?? nowhere();
  return {
    name: "quorum of five",
    traits: traitsFor(resolveQuorum(names, SETTINGS)),
    queue: false,
    get url() {
      return found()?.url ?? "redlock://h1,h2,h3,h4,h5";
    },
    open: () => there().severable(),
    reset: () => there().reset(),
    age: (resource, ms) => there().age(resource, ms),
    ageTombstones: (resource, ms) => there().ageTombstones(resource, ms),
    sever: (engine) => there().sever(engine),
    restart: () => there().restart(),
    truth: (resource) => there().truth(resource),
    relayed: () => there().relayed(),
    misanswered: () => there().misanswered(),
    excuses: [
      {
        law: "L13.10",
        why: "independent nodes keep no common queue: the first claim after a release is served",
        witness: overtaken,
      },
    ],
  };
}

/** A waiter was refused and will come back later. Before that, another claim comes for the first time. */
async function overtaken(harness: Harness): Promise<void> {
  const engines = [await harness.open(), await harness.open(), await harness.open()] as const;
  const [holder, early, late] = engines;
  const call = () => now(3_000);
  try {
    const held = claim("door");
    assert.equal((await holder.tryAcquire(held, call())).kind, "granted");
    const { kind } = await early.tryAcquire(claim("door"), call());
    if (kind !== "busy") throw new Error(`a held resource was answered with ${kind}`);
    const { grantId } = held;
    await holder.release([{ resource: "door", grantId, tombstoneMs: 0 }], call());
    const overtaking = await late.tryAcquire(claim("door"), call());
    assert.equal(overtaking.kind, "busy", "somebody else has waited for longer");
  } finally {
    for (const engine of engines) await engine.close();
  }
}

function nowhere(): never {
  throw new Error("this harness has no servers");
}
