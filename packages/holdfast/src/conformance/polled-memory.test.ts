import { test } from "node:test";
import type { Engine } from "../engine.js";
import { checkLaws, type Harness, withoutQueue } from "./index.js";
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
    ...withoutQueue("without a queue, the claim that polls first is granted", "L2.13", "L13.10"),
  ],
};

checkLaws(harness, test);
