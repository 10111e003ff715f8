import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../connect.js";
import { memoryEngine } from "../engines/memory/index.js";
import { UnsupportedError, UsageError } from "../errors.js";

test("memory: opens a new store each time", async () => {
  await using one = await connect("memory:");
  await using two = await connect("memory:", { defaults: { ttlMs: 5_000 } });
  assert.equal(one.engine.name, "memory");
  assert.ok((await one.acquire("a")).held);
  assert.ok((await two.acquire("a")).held);
});

test("connect uses the engine that it is given", async () => {
  const engine = memoryEngine();
  await using locks = await connect(engine);
  assert.equal(locks.engine.name, "memory");
  assert.equal(locks.engine.traits, engine.traits);
});

test("an unknown scheme is refused, and the known ones are named", async () => {
  for (const url of ["consul://h", "constructor:", "__proto__:"]) {
    await assert.rejects(connect(url), (error) => {
      assert.ok(error instanceof UnsupportedError || error instanceof UsageError, String(error));
      return true;
    });
  }
  await assert.rejects(connect("consul://h"), /consul.*memory:.*sqlite:/);
});

test("memory: takes neither a path nor a parameter", async () => {
  await assert.rejects(connect("memory:x"), UsageError);
  await assert.rejects(connect("memory://h"), UsageError);
  await assert.rejects(connect("memory:?prefix=a"), /prefix/);
});

test("a target that is neither a URL nor an engine is refused", async () => {
  for (const target of [undefined, null, 5, ""]) {
    await assert.rejects(connect(target as never), UsageError);
  }
});

test("wrong options are refused at connect", async () => {
  await assert.rejects(connect("memory:", { defaults: { ttlMs: 0 } }), UsageError);
});
