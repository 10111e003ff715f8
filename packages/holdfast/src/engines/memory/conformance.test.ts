import { test } from "node:test";
import { checkLaws } from "../../conformance/index.js";
import { memoryHarness } from "../../conformance/wrong-engines/memory-harness.js";

checkLaws(memoryHarness(), test);
