import assert from "node:assert/strict";
import { test } from "node:test";
import { checkLongList } from "../../../../test-support/long-list.fixture.js";
import { SETTINGS } from "../support/harness.fixture.js";
import { fill } from "../support/names.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const NODES = 5;
// On a machine with nothing else to do a request takes 4 ms. A busy one stops a node in the middle.
const LONGEST_MS = 200;

test("a list of 100,000 names is linear, keeps nothing, and keeps no node for long", async () => {
  await using quorum = await TestQuorum.start(NODES, SETTINGS);
  await checkLongList({
    engine: await quorum.engine(),
    pids: quorum.servers.map(({ pid }) => pid),
    fill: async (first, last) => {
      await fill(quorum, first, last);
      for (const admin of quorum.admins) {
        await admin.config("SET", "slowlog-log-slower-than", "1000");
        await admin.slowlog("RESET");
      }
    },
    mostHeapMb: 20,
  });
  const slow = await Promise.all(quorum.admins.map((admin) => admin.slowlog("GET", 1_000)));
  const took = (slow.flat() as [number, number, number][]).map(([, , micros]) => micros / 1_000);
  const longestMs = Math.max(0, ...took);
  console.log(`# longest request at a node ${longestMs} ms`);
  assert.ok(longestMs < LONGEST_MS, `a request took ${longestMs} ms`);
});
