import { test } from "node:test";
import { addUp } from "./torture.fixture.js";

test("100 increments of each of 8 processes add up while one is killed every 200 ms and replaced", () =>
  addUp(100));
