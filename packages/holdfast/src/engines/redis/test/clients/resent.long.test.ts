// A release that is run and whose answer is lost, with Sentinels and on a Cluster. Their clients
// may send it again by themselves, and run() must not take that for a loss.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Relay } from "@holdfast/servers";
import { until } from "../../../../test-support/until.fixture.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES } from "../support/test-server.fixture.js";

const CLUSTERS = { sentinel: () => TestCluster.sentinel(), cluster: () => TestCluster.cluster() };

for (const [kind, start] of Object.entries(CLUSTERS)) {
  describe(`a release that the client sends twice, ${kind}`, () => {
    for (const client of CLIENT_NAMES) {
      it(`is no loss of the lease: run resolves (${client})`, async () => {
        await using cluster = await start();
        const { admin, ports } = cluster.topology;
        const relays = new Map<number, Relay>();
        for (const port of ports) relays.set(port, await Relay.start(port));
        const each = (tell: (relay: Relay) => void) => {
          for (const relay of relays.values()) tell(relay);
        };
        try {
          const locks = await cluster.locks({ client, ways: (port) => relays.get(port)!.port });
          await (await locks.acquire("job")).release();
          const running = locks.run("job", { ttlMs: 60_000 }, async () => {
            each((relay) => relay.mute());
            const released = async () => (await admin.exists("holdfast:job")) === 0;
            void until("it is released", released, 20_000).then(() => {
              each((relay) => relay.cut());
              each((relay) => relay.mend());
            });
            return "done";
          });
          assert.equal(await running, "done");
        } finally {
          await Promise.all([...relays.values()].map((relay) => relay.close()));
        }
      });
    }
  });
}
