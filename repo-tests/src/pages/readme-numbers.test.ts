import assert from "node:assert/strict";
import { test } from "node:test";
import { read, readJson } from "../repo-files.js";
import { freshReadmes, numbers, RESULTS, type Results } from "./readme-numbers.js";

const results = readJson<Results>(RESULTS);

test("the numbers in both READMEs are those of the last benchmark", () => {
  const hint = "run node repo-tests/dist/pages/readme-numbers.js --write";
  for (const [path, text] of freshReadmes(results)) {
    assert.equal(read(path), text, `${path}: ${hint}`);
  }
});

test("another measurement makes another table", () => {
  const text = JSON.stringify(results).replaceAll('"p50":', '"p50":1');
  assert.notEqual(numbers(JSON.parse(text) as Results, "en"), numbers(results, "en"));
});

test("a contender that was not measured is an error, and no empty cell", () => {
  const tables = results.tables.filter(({ scenario }) => scenario !== "renewal");
  assert.throws(() => numbers({ ...results, tables }, "en"), /no holdfast-ioredis in renewal/);
});
