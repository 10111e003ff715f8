import assert from "node:assert/strict";
import { test } from "node:test";
import type { Claim } from "../../../engine.js";
import { encodeBatch, encodeClaim, encodeRelease, encodeRenewal } from "./encode.js";
import { keysOf } from "./keys.js";

const ONE = { key: "a", words: ["renew", "id1", "5"] };
const OTHER = { key: "b", words: ["withdraw", "id2"] };

test("the channel comes first, then the words of each operation; keys are in the same order", () => {
  assert.deepEqual(encodeBatch([ONE, OTHER], "here", false), {
    keys: ["a", "b"],
    args: ["here", ...ONE.words, ...OTHER.words],
    alone: false,
  });
});

test("an operation about several resources has the keys of all", () => {
  const renewMany = { key: "a", keys: ["a", "b", "c"], words: ["renew-many", "5", "ids"] };
  assert.deepEqual(encodeBatch([renewMany], "here", false), {
    keys: ["a", "b", "c"],
    args: ["here", "renew-many", "5", "ids"],
    alone: true,
  });
});

test("on a Cluster each operation has all keys that it may use", () => {
  const { keys } = encodeBatch([ONE, OTHER], "here", true);
  assert.deepEqual(keys, [...keysOf("a"), ...keysOf("b")]);
});

test("the most frequent operations are one word", () => {
  const grantId = "0123456789abcdef".repeat(2);
  const claim: Claim = {
    ...{ resource: "a", grantId, mode: "exclusive", limit: null, ttlMs: 30_000 },
    ...{ lockDelayMs: 0, tokens: 33, label: "a:b" },
  };
  assert.deepEqual(encodeClaim("enqueue", claim, 7), [`+${grantId}30000:7:33:a:b`]);
  assert.deepEqual(encodeClaim("acquire", claim, 0), [`?${grantId}30000:0:33:a:b`]);
  assert.deepEqual(encodeRelease({ resource: "a", grantId, tombstoneMs: 0 }), [`-${grantId}`]);
});

test("a renewal is one word, unless it leaves its grant behind or the id has another length", () => {
  const ref = { resource: "a", grantId: "f".repeat(32), ttlMs: 500 };
  assert.deepEqual(encodeRenewal(ref, 7), [`=${ref.grantId}500:0:7`]);
  assert.deepEqual(encodeRenewal({ ...ref, index: 3 }, 7), [`=${ref.grantId}500:3:7`]);
  const left = ["renew", ref.grantId, "500", "3", "7", "1"];
  assert.deepEqual(encodeRenewal({ ...ref, index: 3, leave: true }, 7), left);
  const other = ["renew", "id", "500", "0", "7", "0"];
  assert.deepEqual(encodeRenewal({ ...ref, grantId: "id" }, 7), other);
});

test("ids of another length, lock-delays, shared claims and tombstones are encoded in separate words", () => {
  const claim: Claim = {
    ...{ resource: "a", grantId: "id", mode: "exclusive", limit: null, ttlMs: 5 },
    ...{ lockDelayMs: 0, tokens: 1, label: "l" },
  };
  assert.deepEqual(encodeClaim("enqueue", claim, 2), [
    "enqueue",
    "id",
    "x",
    "5",
    "0",
    "1",
    "l",
    "2",
  ]);
  const long = { ...claim, grantId: "f".repeat(32) };
  assert.deepEqual(encodeClaim("acquire", { ...long, lockDelayMs: 7 }, 0)[0], "acquire");
  assert.deepEqual(encodeClaim("enqueue", { ...long, mode: "shared", limit: 2 }, 1)[2], "s2");
  assert.deepEqual(encodeRelease({ resource: "a", grantId: "id", tombstoneMs: 0 }), [
    "release",
    "id",
    "0",
  ]);
  assert.deepEqual(
    encodeRelease({ resource: "a", grantId: long.grantId, tombstoneMs: 9 })[0],
    "release",
  );
});
