import { test } from "node:test";
import { checkQueues, checkScenarios } from "../../test/suite.fixture.js";
import { suite } from "./index.js";

test("every scenario measures on a real server, kazoo beside us", () =>
  checkScenarios(suite, "holdfast", ["kazoo"]));

test("every contender's waiters are in the queue that it names, on our clock", () =>
  checkQueues(suite));
