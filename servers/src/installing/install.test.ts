import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CATALOGUE, type CatalogueItem } from "./catalogue.js";
import { ensure, ensureAll, findBinary, searchFolders } from "./install.js";

test("findBinary looks in the PATH first", () => {
  const found = findBinary("sh");
  assert.match(found ?? "", /\/sh$/);
  assert.equal(findBinary("no-such-program-anywhere"), null);
});

test("findBinary searches versioned folders, newest first, and skips files that cannot run", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "find-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const version of ["9", "15", "16"]) {
    mkdirSync(join(folder, version, "bin"), { recursive: true });
    // Version 16 was unpacked without the right to run it.
    const mode = version === "16" ? 0o644 : 0o755;
    writeFileSync(join(folder, version, "bin/served"), "#!/bin/sh\n", { mode });
  }
  const folders = searchFolders("", [`${folder}/*/bin`]);
  assert.deepEqual(folders, [`${folder}/16/bin`, `${folder}/15/bin`, `${folder}/9/bin`]);
  assert.equal(findBinary("served", folders), `${folder}/15/bin/served`);
});

test("searchFolders leaves out empty PATH entries, which would mean the current folder", () => {
  assert.deepEqual(searchFolders(":/a::/b:/a", []), ["/a", "/b"]);
});

test("ensure returns Debian's Python for a module that it can import", () => {
  const python = ensure("redis-py");
  const { stdout } = spawnSync(python, ["-c", "import redis; print(redis.__name__)"]);
  assert.equal(String(stdout).trim(), "redis");
});

test("ensure finds everything in the catalogue, and ensureAll then installs nothing", () => {
  ensureAll();
  assert.deepEqual(ensureAll(), []);
  for (const thing of Object.keys(CATALOGUE) as CatalogueItem[])
    assert.match(ensure(thing), /^\//, thing);
});
