import { test } from "node:test";
import { checkLaws } from "../../conformance/index.js";
import { harness } from "./harness.fixture.js";

checkLaws(harness(), test);
