import type { Harness } from "../../../../conformance/index.js";
import { memoryHarness } from "../../../../conformance/wrong-engines/memory-harness.js";

export function harness(): Harness {
  return memoryHarness();
}
