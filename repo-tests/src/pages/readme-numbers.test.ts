import assert from "node:assert/strict";
import { test } from "node:test";
import { readJson } from "../repo-files.js";
import { numbers, RESULTS, type Results } from "./readme-numbers.js";

const results = readJson<Results>(RESULTS);

test("another measurement makes another table", () => {
  const text = JSON.stringify(results).replaceAll('"p50":', '"p50":1');
  assert.notEqual(numbers(JSON.parse(text) as Results, "en"), numbers(results, "en"));
});

test("a contender that was not measured is an error, and no empty cell", () => {
  const tables = results.tables.filter(({ scenario }) => scenario !== "renewal");
  assert.throws(() => numbers({ ...results, tables }, "en"), /no holdfast-ioredis in renewal/);
});
