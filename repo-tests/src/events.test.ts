import assert from "node:assert/strict";
import { test } from "node:test";
import { channels } from "holdfast";
import { LIBRARY, read, shippedSources } from "./repo-files.js";

const page = read("docs/events.md");

test("docs/events.md has a row for every channel, and for no other", () => {
  const rows = [...page.matchAll(/^\| `holdfast:([\w-]+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(rows.sort(), Object.keys(channels).sort());
});

test("docs/events.md lists every operation during which a failure is reported", () => {
  const known = shippedSources(LIBRARY).flatMap((path) =>
    [...read(path).matchAll(/\bduring: "([\w -]+)"|\brunInBackground\("([\w -]+)"/g)].map(
      ([, emitted, background]) => emitted ?? background ?? "",
    ),
  );
  assert.ok(known.includes("heartbeat"));
  const rows = [...page.matchAll(/^\| `([\w -]+)` \| /gm)].map(([, name]) => name);
  assert.deepEqual(rows.sort(), [...new Set(known)].sort());
});
