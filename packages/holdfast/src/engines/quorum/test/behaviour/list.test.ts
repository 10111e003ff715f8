// Listing many names: what it costs the nodes is linear, and a page is a few requests.
import { test } from "node:test";
import { checkListAmongChanges } from "../../../../test-support/list-among-changes.fixture.js";
import { checkListCost } from "../../../../test-support/list-cost.fixture.js";
import { SETTINGS } from "../support/harness.fixture.js";
import { fill } from "../support/names.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const NODES = 3;
// Two nodes are looked through, and all three asked about what is found there; half of the keys are names.
const MOST_REQUESTS_A_PAGE = 24;

test("a list asks the nodes in pages, however many names there are", async () => {
  await using quorum = await TestQuorum.start(NODES, SETTINGS);
  const requests = async () => {
    const told = await Promise.all(quorum.admins.map((admin) => admin.info("commandstats")));
    const calls = told.join("\n").matchAll(/^cmdstat_(?:evalsha|eval|scan):calls=(\d+)/gm);
    return [...calls].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  await checkListCost({
    locks: await quorum.locks(),
    fill: (first, last) => fill(quorum, first, last),
    cost: requests,
    mostPerName: MOST_REQUESTS_A_PAGE / 256,
  });
});

test("lists go on while names come and go", async () => {
  await using quorum = await TestQuorum.start(NODES, SETTINGS);
  await checkListAmongChanges(await quorum.engine());
});
