export { type FlakyEngine, type Fault, flakyEngine, type Verb } from "./flaky-engine.js";
export { ManualClock } from "./manual-clock.js";
