// Law L23, with what the nodes work.
import { after, before, it } from "node:test";
import { processorTimeUs } from "@holdfast/servers";
import { excusedCost } from "../../../../conformance/excused-cost.fixture.js";
import { checkLaws } from "../../../../conformance/index.js";
import { harness, SETTINGS } from "../support/harness.fixture.js";
import { Ground } from "../support/test-server.fixture.js";

let ground: Ground | null = null;

before(async () => {
  ground = await Ground.start(5, SETTINGS);
});
after(() => ground?.[Symbol.asyncDispose]());

const laws = {
  ...harness(() => ground),
  serverTimeUs: () => ground!.servers.reduce((sum, { pid }) => sum + processorTimeUs(pid), 0),
  excuses: excusedCost(["L23.3"], 500, "a node reads all holders of a resource at each request"),
};
checkLaws(laws, (title, run) => {
  if (title.startsWith("L23.")) it(title, run);
});
