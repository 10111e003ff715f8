// Law L22 on five nodes, all of which forget everything when they are restarted.
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { checkLaws, type Survival } from "../../../../conformance/index.js";
import { harness } from "../support/harness.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const NODES = 5;
const TTL_MS = 2_000;
const MAX_TTL_MS = 2_000;
/** A node that restarted counts again after its quarantine. */
const QUARANTINE_MS = MAX_TTL_MS + 1_000;

let quorum: TestQuorum | null = null;

before(async () => {
  quorum = await TestQuorum.start(NODES, { maxTtlMs: MAX_TTL_MS });
});
after(() => quorum?.[Symbol.asyncDispose]());

const members: Survival["members"] = Array.from({ length: NODES }, (_, i) => ({
  name: `node ${i}`,
  hang: () => quorum!.servers[i]!.pause(),
  resume: () => quorum!.servers[i]!.resume(),
  restart: async () => {
    await quorum!.servers[i]!.restart();
    await sleep(QUARANTINE_MS);
  },
}));

describe("a quorum of five", { concurrency: 1 }, () => {
  const laws = { ...harness(() => quorum), survival: { ttlMs: TTL_MS, members } };
  checkLaws(laws, (title, run) => {
    if (title.startsWith("L22.")) it(title, run);
  });
});
