// A folder with too many files is a drawer: a reader finds a thing by its folder's name or not at
// all.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LIBRARY, repoFiles } from "./repo-files.js";

const MOST_AT_THE_ROOT = 12;
const MOST_IN_A_FOLDER = 20;
// Folders of one leaf kind: each file is one more of the same, so they may be long.
const LEAF_KINDS = ["sql", "scripts", "laws", "decisions", "results", "scenarios"];

const folders = new Map<string, number>();
for (const path of repoFiles().filter((file) => !file.endsWith(".gen.ts"))) {
  const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
  folders.set(folder, (folders.get(folder) ?? 0) + 1);
}

test(`the root of the library holds at most ${MOST_AT_THE_ROOT} files`, () => {
  const count = folders.get(LIBRARY) ?? 0;
  assert.ok(count > 0 && count <= MOST_AT_THE_ROOT, `${count} files in ${LIBRARY}`);
});

test(`a folder holds at most ${MOST_IN_A_FOLDER} files, unless all are of one leaf kind`, () => {
  const full = [...folders]
    .filter(([folder]) => !LEAF_KINDS.includes(folder.slice(folder.lastIndexOf("/") + 1)))
    .filter(([, count]) => count > MOST_IN_A_FOLDER)
    .map(([folder, count]) => `${folder}: ${count} files`);
  assert.deepEqual(full, []);
});
