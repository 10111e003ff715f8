// Law L22 on an ensemble of three.
import { after, before, describe, it } from "node:test";
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from "@holdfast/servers";
import { checkLaws, type Survival } from "../../../../conformance/index.js";
import { harness, type Servers } from "../support/harness.fixture.js";

let ensemble: ZooKeeperEnsemble;
const servers: Servers = { hosts: "", members: [], restart: async () => {} };

before(async () => {
  ensemble = await startZooKeeperEnsemble();
  const { hosts, members } = ensemble;
  Object.assign(servers, { hosts, members });
});
after(() => ensemble.stop());

const members: Survival["members"] = [0, 1, 2].map((i) => ({
  name: `member ${i}`,
  hang: () => ensemble.members[i]!.pause(),
  resume: async () => {
    ensemble.members[i]!.resume();
    await ensemble.whole();
  },
  restart: async () => {
    await ensemble.members[i]!.restart();
    await ensemble.whole();
  },
}));

// The members take two seconds to notice a leader that hangs, and then elect another one. A lease
// was renewed up to a third of its ttl before, and must last until then.
const TTL_MS = 8_000;

for (const hold of ["session", "ttl"] as const) {
  describe(`three servers, hold ${hold}`, { concurrency: 1 }, () => {
    const laws = { ...harness(servers, { hold }), survival: { ttlMs: TTL_MS, members } };
    checkLaws(laws, (title, run) => {
      if (title.startsWith("L22.")) it(title, run);
    });
  });
}
