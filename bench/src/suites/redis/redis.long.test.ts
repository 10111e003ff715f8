import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { pause } from "../../measuring/instant.js";
import { Measurement } from "../../measuring/measurement.js";
import { resourceName } from "../../measuring/worker/holdings.js";
import { BLINK, checkScenarios, inTurns } from "../../test/suite.fixture.js";
import { RESOURCE } from "../terms.js";
import { suite } from "./index.js";

// Long enough that a timer which a busy machine calls late is still in time.
const TTL_MS = 5_000;

// One of ours and one that marks the limit, which the test below does not make wait.
test("every scenario measures on a real server and finds the requirements' numbers", () =>
  checkScenarios(suite, "holdfast-ioredis", ["queue"]));

test("every contender holds the key and sends the commands that it says", async () => {
  await inTurns(8, suite.contenders, async (contender) => {
    const { sends, renews = [], key } = contender.traces!;
    await using stage = await Measurement.open(suite, contender, BLINK);
    const [worker] = await stage.workers(1, { ttlMs: TTL_MS });
    const held = (resource: string) => stage.content.held(contender.traces!, [resource]);
    const seen = await watch(stage.requiredServer.url, async () => {
      await worker!.call("acquire");
      assert.equal(await held(RESOURCE), 1, key(RESOURCE));
      await worker!.call("release");
      assert.equal(await held(RESOURCE), 0, key(RESOURCE));
      if (contender.sitsOut?.renewal !== undefined) return;
      await worker!.call("hold", 1);
      await pause(1.05 * TTL_MS);
      assert.equal(await held(resourceName(0)), 1, `${contender.name} renews`);
    });
    const unsaid = [...seen.sent].filter((name) => ![...sends, ...renews].includes(name));
    assert.deepEqual(unsaid, [], `${contender.name} sends more than it says`);
    // The server's count cannot tell them apart.
    const twofold = [...seen.scripted].filter((name) => sends.includes(name));
    assert.deepEqual(twofold, [], `${contender.name} sends what its scripts run too`);
  });
});

/** The commands that ran during the work, without this test's own and those that open a connection. */
async function watch(url: string, work: () => Promise<void>) {
  const client = new Redis(url);
  const monitor = await client.monitor();
  const seen = { sent: new Set<string>(), scripted: new Set<string>() };
  const asked = new Set(["exists", "info", "script", "subscribe", "hello", "client", "ping"]);
  monitor.on("monitor", (_time: string, [name]: string[], source: string) => {
    const command = name!.toLowerCase();
    if (source === "lua") seen.scripted.add(command);
    else if (!asked.has(command)) seen.sent.add(command);
  });
  try {
    await work();
  } finally {
    monitor.disconnect();
    client.disconnect();
  }
  return seen;
}
