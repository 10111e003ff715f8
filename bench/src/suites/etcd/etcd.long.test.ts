import { test } from "node:test";
import { checkQueues, checkScenarios } from "../../test/suite.fixture.js";
import { suite } from "./index.js";

test("every scenario measures on a real server, the server's own lock beside us", () =>
  checkScenarios(suite, "holdfast", ["lock-service"]));

test("every contender's waiters are in the queue that it names, on our clock", () =>
  checkQueues(suite));
