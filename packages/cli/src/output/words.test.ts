import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { AcquireTimeoutError, UsageError } from "holdfast";
import { explain } from "../exit-codes.js";
import { orMeant } from "../input/did-you-mean.js";
import { parseDuration, showDuration } from "../input/duration.js";
import { jsonLine, printable } from "./printable.js";
import { redact } from "./redact.js";

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
  assert.equal(redact("p%40ss p@ss hush me", url), "*** *** *** me");
  assert.equal(redact("fine", "sqlite:locks.db"), "fine");
  assert.equal(redact("a@b is a path", "sqlite:/a@b"), "a@b is a path");
  for (const wrong of ["postgres//u:s3cret@h/db", "redis/:s3cret@h", ":s3cret@h", "s3cret@h"]) {
    assert.doesNotMatch(redact(`got "${wrong}"`, wrong), /s3cret/);
  }
});

const HOSTILE = "\x1b]0;pwned\x07\x1b[31mRED\nfake line\x9b2J\u202etxt\u2028";
// All that a terminal would obey: C0, DEL, C1, and what ends lines or turns them around.
const OBEYED = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

test("text of others reaches nobody's terminal raw", () => {
  const shown = "\\u001b]0;pwned\\u0007\\u001b[31mRED\\nfake line\\u009b2J\\u202etxt\\u2028";
  assert.ok(new UsageError(HOSTILE).message === shown, "as in errors of the library");
  assert.equal(printable(HOSTILE), shown);
  assert.equal(printable('夜间 café 👩‍💻 O\'Neil "x"'), '夜间 café 👩‍💻 O\'Neil "x"');
  const holder = {
    mode: "exclusive",
    token: 1n,
    label: HOSTILE,
    remainingMs: 1,
    revoked: false,
  } as const;
  assert.doesNotMatch(explain(new AcquireTimeoutError("a", 5, [holder])), OBEYED);
  const line = jsonLine({ label: HOSTILE });
  assert.doesNotMatch(line.trimEnd(), OBEYED);
  assert.deepEqual(JSON.parse(line), { label: HOSTILE });
});

test("a label that would write to the terminal is escaped in the line that says for whom we wait", () => {
  const script = `
    import { TextReporter } from ${JSON.stringify(import.meta.resolve("./text-reporter.js"))};
    const holder = { label: ${JSON.stringify(HOSTILE)}, token: 1n };
    const view = { resource: "a", holders: [holder], waiters: [], closedMs: 0 };
    new TextReporter("me", false).waiting(view, 1_000);
  `;
  const { stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  assert.match(stderr, /^holdfast: waiting for "a", held by .*RED.*fake line.*\n$/);
  assert.doesNotMatch(stderr.trimEnd(), OBEYED);
});
