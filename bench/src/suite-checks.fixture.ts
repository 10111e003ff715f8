import assert from "node:assert/strict";
import { runSuite } from "./run-suite.js";
import { Stage } from "./stage.js";
import type { Suite } from "./suite.js";

const BLINK = { seconds: 0.2, size: 50, quick: true, rounds: 1, onProgress: () => {} };

/** Every scenario, in a blink, with one of ours and one by hand; and every number that must be shown is there. */
export async function measuresAll(suite: Suite, contenders: readonly string[]): Promise<void> {
  const { tables, requirements } = await runSuite(suite, { ...BLINK, scenarios: null, contenders });
  for (const { scenario, columns, rows } of tables) {
    for (const id of contenders) {
      const { measures, why } = rows.find(({ contender }) => contender === id)!;
      assert.equal(why, null, `${scenario}: ${id}`);
      for (const { key } of columns.filter(({ key }) => key !== "gaveUp")) {
        // On a machine that is busy enough nobody is served in a blink, and a wait is not a number.
        assert.equal(typeof measures![key], "number", `${scenario}: ${id} has ${key}`);
      }
    }
  }
  for (const { title, got } of requirements) assert.equal(typeof got, "number", title);
}

/** What the server counts for one acquire and one release, after a first of each. */
export async function statementsOf(suite: Suite, id: string): Promise<[number, number]> {
  const contender = suite.contenders.find((candidate) => candidate.id === id)!;
  await using stage = await Stage.open(suite, contender, BLINK);
  const [worker] = await stage.workers(1);
  await worker!.call("acquire");
  await worker!.call("release");
  const before = (await stage.calls())!;
  await worker!.call("acquire");
  const between = (await stage.calls())!;
  await worker!.call("release");
  return [between - before, (await stage.calls())! - between];
}
