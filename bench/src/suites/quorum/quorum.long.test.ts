import { test } from "node:test";
import { checkScenarios } from "../../test/suite.fixture.js";
import { suite } from "./index.js";

test("every scenario measures on real servers and finds the requirements' numbers", () =>
  checkScenarios(suite, "quorum", ["single"]));
