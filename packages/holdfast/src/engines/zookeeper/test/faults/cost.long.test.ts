// Law L23, with the processor time of the server.
import { after, before, describe, it } from "node:test";
import { processorTimeUs, startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { excusedCost } from "../../../../conformance/excused-cost.fixture.js";
import { checkLaws } from "../../../../conformance/index.js";
import { harness, type Servers } from "../support/harness.fixture.js";

let server: ZooKeeperServer;
const servers: Servers = { hosts: "", members: [], restart: async () => {} };

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { hosts: server.hosts, members: [server] });
});
after(() => server.stop());

const EXCUSES = {
  session: [
    // Beside 2,000 waiters the cost is 1.6 times that beside 50. More waiters make it plain.
    ...excusedCost(["L23.2"], 6_000, "getChildren reads all waiters"),
    ...excusedCost(["L23.3"], 2_000, "getChildren reads all holders"),
  ],
  ttl: excusedCost(["L23.3"], 500, "all holders of a resource are in one record"),
};

for (const hold of ["session", "ttl"] as const) {
  describe(`hold ${hold}`, { concurrency: 1 }, () => {
    const serverTimeUs = () => processorTimeUs(server.pid);
    const laws = { ...harness(servers, { hold }, EXCUSES[hold]), serverTimeUs };
    checkLaws(laws, (title, run) => {
      if (/^L23\./.test(title)) it(title, run);
    });
  });
}
