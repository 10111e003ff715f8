import assert from "node:assert/strict";
import { test } from "node:test";
import { UsageError } from "holdfast";
import { orMeant } from "./did-you-mean.js";
import { parseDuration, showDuration } from "./duration.js";
import { withoutSecrets } from "./secrets.js";

test("durations are a whole number and a unit, and nothing else", () => {
  const read = (text: string) => parseDuration("--ttl", text);
  assert.deepEqual(
    ["500ms", "10s", "5m", "1h", "0s"].map(read),
    [500, 10_000, 300_000, 3_600_000, 0],
  );
  for (const text of ["", "10", "1.5s", "-1s", "1d", "1 s", "s", "1S", "9999999999999h", "1e3s"]) {
    assert.throws(() => read(text), UsageError, text);
  }
});

test("durations are shown as people say them", () => {
  assert.deepEqual([0, 849, 9_949, 9_950, 59_400, 185_000, 7_800_000].map(showDuration), [
    ...["0.0 s", "0.8 s", "9.9 s", "10 s", "59 s", "3 min 5 s", "2 h 10 min"],
  ]);
});

test("near words are suggested, far ones are not", () => {
  const known = ["--lock-delay", "--label", "--limit", "--ttl"];
  assert.equal(orMeant("--lable", known), ' Did you mean "--label"?');
  assert.equal(orMeant("--lock", known), ' Did you mean "--lock-delay"?');
  assert.equal(orMeant("--frobnicate", known), "");
  assert.equal(orMeant("-x", known), "");
});

test("secrets of a URL are masked wherever they turn up, encoded or not", () => {
  const url = "redis://me:p%40ss@h:1/0?secret=hush";
  assert.equal(withoutSecrets("p%40ss p@ss hush me", url), "*** *** *** me");
  assert.equal(withoutSecrets("fine", "sqlite:locks.db"), "fine");
});
