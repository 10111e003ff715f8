import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { read, root } from "./repo-files.js";

const load = (file: string) => import(pathToFileURL(join(root, "setup", file)).href);

test("every tested version has its row, in order, with a reason for each failure", async () => {
  const { VERSIONS } = (await load("compat/servers.mjs")) as { VERSIONS: { name: string }[] };
  const { rowsOf } = (await load("compat/table.mjs")) as {
    rowsOf(page: string): Map<string, string>;
  };
  const rows = rowsOf(read("docs/compatibility.md"));
  assert.deepEqual(
    [...rows.keys()],
    VERSIONS.map(({ name }) => name),
  );
  for (const row of rows.values()) {
    assert.match(row, /\| \*{0,2}\d+ of \d+\*{0,2} \||not run here/, row);
    assert.doesNotMatch(row, /nobody has said why/, row);
  }
});
