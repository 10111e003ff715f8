import { test } from "node:test";
import { checkLaws } from "../../../../conformance/index.js";
import { harness } from "../support/harness.fixture.js";

checkLaws(harness(), test);
