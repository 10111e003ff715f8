import assert from "node:assert";
import { test } from "node:test";
import type { Engine } from "../engine.js";
import { Locks } from "../locks.js";
import { checkLaws, findLaw, type Harness } from "./index.js";
import { altered } from "./wrong-engines/altered.js";
import { memoryHarness } from "./wrong-engines/memory-harness.js";

/** The same engine without queue and notifications, so that core has to poll. */
function pollOnly(engine: Engine): Engine {
  const { queue: _queue, watch: _watch, ...polled } = altered(engine, {});
  return polled;
}

// Also without ageing: here the laws wait in real time.
const { age: _age, ...polled } = memoryHarness(pollOnly);

const harness: Harness = {
  ...polled,
  name: "memory, polled",
  queue: false,
  watch: false,
  excuses: [
    ...(polled.excuses ?? []),
    {
      law: "L2.13",
      why: "without a queue, a reader cannot see that a writer waits",
      // The law itself is deterministic here, because the backend does not know the waiting writer.
      witness: (it) => findLaw("L2.13").run(it),
    },
    {
      law: "L13.10",
      why: "the claim that polls first after the release is granted first",
      async witness(it) {
        const holder = new Locks(await it.open());
        const [early, late] = [new Locks(await it.open()), new Locks(await it.open())];
        const lease = await holder.acquire("door");
        const served: string[] = [];
        const works = [
          early.run("door", { fair: "strict", retry: [400, 5, 5, 5] }, () => {
            served.push("early");
          }),
          late.run("door", { fair: "strict", retry: Array(1_000).fill(5) }, () => {
            served.push("late");
          }),
        ];
        // The early claim has polled and pauses for 400 ms; the late one polls every 5 ms.
        await lease.release();
        await Promise.all(works);
        for (const locks of [holder, early, late]) await locks.close();
        assert.deepEqual(served, ["early", "late"]);
      },
    },
  ],
};

checkLaws(harness, test);
