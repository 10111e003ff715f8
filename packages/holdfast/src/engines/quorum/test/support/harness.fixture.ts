import { type Harness, withoutQueue } from "../../../../conformance/index.js";
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
    excuses: withoutQueue(
      "independent nodes keep no common queue: the first claim after a release is served",
      "L13.10",
    ),
  };
}

function nowhere(): never {
  throw new Error("this harness has no servers");
}
