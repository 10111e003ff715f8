import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chosen } from "./chosen.js";
import { ensure } from "./install.js";

const VARIABLE = "HOLDFAST_SERVER_REDIS";

test("a server is taken from the folder that the environment names, and from nowhere else", (t) => {
  const before = process.env[VARIABLE];
  const folder = mkdtempSync(join(tmpdir(), "chosen-"));
  t.after(() => {
    if (before === undefined) delete process.env[VARIABLE];
    else process.env[VARIABLE] = before;
    rmSync(folder, { recursive: true });
  });
  delete process.env[VARIABLE];
  assert.equal(chosen("redis", ["redis-server"]), null);
  const usual = ensure("redis-server");
  process.env[VARIABLE] = folder;
  assert.throws(
    () => ensure("redis-server"),
    new RegExp(`${VARIABLE} is "${folder}".*valkey-server`),
  );
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/valkey-server"), "", { mode: 0o755 });
  assert.equal(ensure("redis-server"), join(folder, "bin/valkey-server"));
  // The other kinds are what they were.
  assert.equal(chosen("etcd", ["etcd"]), null);
  process.env[VARIABLE] = "";
  assert.equal(ensure("redis-server"), usual);
});
