// Law L23, with the processor time of the server.
import { after, before, it } from "node:test";
import { type EtcdServer, processorTimeUs, startEtcd } from "@holdfast/servers";
import { excusedCost } from "../../../../conformance/excused-cost.fixture.js";
import { checkLaws } from "../../../../conformance/index.js";
import { Lane } from "../support/harness.fixture.js";

let server: EtcdServer;
const lane = new Lane(
  async () => {
    server = await startEtcd();
    return { ports: [server.port], restart: async () => {}, stop: () => server.stop() };
  },
  { direct: true },
);

before(() => lane.start());
after(() => lane.stop());

const why = "a claim finds its place by a range over all keys of the resource";
const harness = {
  ...lane.harness(),
  serverTimeUs: () => processorTimeUs(server.pid),
  excuses: excusedCost(["L23.3"], 2_000, why),
};
checkLaws(harness, (title, run) => {
  if (/^L23\./.test(title)) it(title, run);
});
