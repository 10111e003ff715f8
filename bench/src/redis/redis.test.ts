import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { resourceName } from "../holdings.js";
import { pause } from "../instant.js";
import { runSuite } from "../run-suite.js";
import { Stage } from "../stage.js";
import { RESOURCE } from "../terms.js";
import { suite } from "./index.js";

const BLINK = { seconds: 0.2, size: 50, quick: true, rounds: 1, onProgress: () => {} };
// Long enough that a timer which a busy machine calls late is still in time.
const TTL_MS = 5_000;

// One of ours and one that marks the limit, which the test below does not make wait.
test("every scenario measures on a real server and finds the requirements' numbers", async () => {
  const contenders = ["holdfast-ioredis", "queue"];
  const ids = suite.scenarios.map(({ id }) => id);
  await inTurns(4, ids, async (id) => {
    const { tables } = await runSuite(suite, { ...BLINK, scenarios: [id], contenders });
    const { columns, rows } = tables[0]!;
    const ours = rows.find(({ contender }) => contender === "holdfast-ioredis")!.measures!;
    for (const { key } of columns.filter(({ key }) => key !== "gaveUp")) {
      // On a machine that is busy enough nobody is served in a blink, and a wait is not a number.
      assert.equal(typeof ours[key], "number", `${id}: ours has ${key}`);
    }
    assert.ok(ours[columns[0]!.key]! >= 0, `${id}: ours has a headline`);
    for (const { why } of rows) assert.doesNotMatch(why ?? "", /^failed|^disqualified/, id);
    const wanted = suite.requirements.filter(({ scenario }) => scenario === id);
    assert.ok(wanted.length > 0, `${id} has a requirement`);
    for (const { column } of wanted) {
      const key = column ?? columns[0]!.key;
      assert.ok(
        columns.some((known) => known.key === key),
        `${id}: there is a column ${key}`,
      );
    }
  });
});

test("every contender holds the key and sends the commands that it says", async () => {
  await inTurns(8, suite.contenders, async (contender) => {
    const { sends, renews = [], key } = contender.traces!;
    await using stage = await Stage.open(suite, contender, BLINK);
    const [worker] = await stage.workers(1, { ttlMs: TTL_MS });
    const held = (resource: string) => stage.content.held(contender.traces!, [resource]);
    const seen = await watch(stage.ground.url, async () => {
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

/** All commands that ran meanwhile, but for this test's own and those that open a connection. */
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

/** A few side by side: most of what a short run does is waiting for processes to start. */
async function inTurns<T>(
  atOnce: number,
  all: readonly T[],
  work: (one: T) => Promise<void>,
): Promise<void> {
  const left = [...all];
  const loop = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: atOnce }, loop));
}
