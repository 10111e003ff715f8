// Law L23, with what the nodes work.
import { after, before, it } from "node:test";
import { processorTimeUs } from "@holdfast/servers";
import { excusedCost } from "../../../../conformance/excused-cost.fixture.js";
import { checkLaws } from "../../../../conformance/index.js";
import { harness, SETTINGS } from "../support/harness.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

let quorum: TestQuorum | null = null;

before(async () => {
  quorum = await TestQuorum.start(5, SETTINGS);
});
after(() => quorum?.[Symbol.asyncDispose]());

const laws = {
  ...harness(() => quorum),
  serverTimeUs: () => quorum!.servers.reduce((sum, { pid }) => sum + processorTimeUs(pid), 0),
  excuses: excusedCost(["L23.3"], 500, "a node reads all holders of a resource at each request"),
};
checkLaws(laws, (title, run) => {
  if (title.startsWith("L23.")) it(title, run);
});
