export { type Fault, type FlakyEngine, flakyEngine, type Verb } from "./flaky-engine.js";
export { ManualClock } from "./manual-clock.js";
