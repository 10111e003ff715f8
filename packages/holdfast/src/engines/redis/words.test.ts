import assert from "node:assert/strict";
import { test } from "node:test";
import { touchedBy } from "./keys.js";
import { wordsOf } from "./words.js";

const ONE = { key: "a", words: ["renew", "id1", "5"] };
const OTHER = { key: "b", words: ["give", "id2"] };

test("the channel comes first, then the words of each; keys go in the same order", () => {
  assert.deepEqual(wordsOf([ONE, OTHER], "here", false), {
    keys: ["a", "b"],
    args: ["here", ...ONE.words, ...OTHER.words],
    alone: false,
  });
});

test("one that is about several resources has the keys of all", () => {
  const keep = { key: "a", keys: ["a", "b", "c"], words: ["keep", "5", "ids"] };
  assert.deepEqual(wordsOf([keep], "here", false), {
    keys: ["a", "b", "c"],
    args: ["here", "keep", "5", "ids"],
    alone: true,
  });
});

test("on a Cluster each has all keys that it may touch", () => {
  const { keys } = wordsOf([ONE, OTHER], "here", true);
  assert.deepEqual(keys, [...touchedBy("a", "id1"), ...touchedBy("b", "id2")]);
});
