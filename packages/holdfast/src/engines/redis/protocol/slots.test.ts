import assert from "node:assert/strict";
import { test } from "node:test";
import { startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import { keyOf, keysOf } from "./keys.js";
import { SLOTS, slotOf, tagOf } from "./slots.js";

const NAMES = [
  "a",
  "invoice:42",
  "",
  "{",
  "}{",
  "{}a",
  "{a}b",
  "ключ",
  "钥匙",
  "🔑",
  "x".repeat(1024),
];

test("slotOf gives the slot that the server computes", async () => {
  await using server = await startRedis({ args: ["--cluster-enabled", "yes"] });
  const redis = new Redis(server.port);
  try {
    for (const name of NAMES) {
      assert.equal(slotOf(name), Number(await redis.call("CLUSTER", "KEYSLOT", name)), name);
    }
  } finally {
    redis.disconnect();
  }
});

test("all keys of a resource share a slot, whatever its name", () => {
  for (const name of NAMES.filter((one) => one !== "")) {
    const slots = new Set(keysOf(keyOf("holdfast:", name)).map(slotOf));
    assert.equal(slots.size, 1, name);
  }
});

test("every slot has a tag", () => {
  for (let slot = 0; slot < SLOTS; slot++) assert.equal(slotOf(`push.{${tagOf(slot)}}`), slot);
});
