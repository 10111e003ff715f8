// Plays the seeds of one batch one after the other and posts the result.
import { parentPort, workerData } from "node:worker_threads";
import type { Batch, Tallied } from "./many.js";
import { planOf } from "./plan.js";
import { run } from "./run.js";

const { first, end, step, flaws } = workerData as Batch;
let schedules = 0;
let grants = 0;
let simulatedMs = 0;
let broken: Tallied["broken"] = null;
for (let seed = first; seed < end && broken === null; seed += step) {
  const result = run(planOf(seed), flaws);
  schedules++;
  grants += result.grants;
  simulatedMs += result.simulatedMs;
  if (result.violation !== null) broken = { seed, violation: result.violation };
}
parentPort?.postMessage({ schedules, grants, simulatedMs, broken } satisfies Tallied);
