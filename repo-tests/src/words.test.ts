import assert from "node:assert/strict";
import { test } from "node:test";
import { read, repoFiles } from "./repo-files.js";

// Words of one machine or of one person's way of working, which mean nothing to a reader. Each is
// joined from parts, so that this file does not contain what it forbids.
const FORBIDDEN = [
  ["a folder of one machine", ["/wo", "rk/"].join("")],
  ["a folder of one machine", ["/ro", "ot/"].join("")],
  ["a package registry's host", ["regis", "try\\.[a-z0-9-]+\\."].join("")],
  ["a package registry's host", ["npm", "mirror"].join("")],
  ["a package registry's host", ["art", "ifactory"].join("")],
  ["an address in the lockfile", ['"res', 'olved": "http'].join("")],
  ["how the text came about", ["session", " transcript"].join("")],
  [
    "notes that are not in this repository",
    ["\\b(DES", "IGN|STYLE|MACHINE|PEERS)\\.md\\b"].join(""),
  ],
  ["notes that are not in this repository", ["DES", "IGN §"].join("")],
] as const;

test("no file names the machine on which, or the way in which, it was written", () => {
  const found = repoFiles().flatMap((path) => {
    const text = read(path);
    if (text.includes("\0")) return [];
    return FORBIDDEN.flatMap(([what, pattern]) => {
      const match = new RegExp(pattern).exec(text);
      return match === null ? [] : [`${path} names ${what}: ${match[0]}`];
    });
  });
  assert.deepEqual(found, []);
});
