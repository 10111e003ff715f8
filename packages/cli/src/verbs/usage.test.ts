import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { finish, holdfast, MAIN, Running } from "../test/holdfast.fixture.js";

const MISTAKES: readonly (readonly [string, string[], RegExp])[] = [
  ["a verb that is not there", ["rum", "a"], /no command "rum"\. Did you mean "run"\?/],
  ["an option before the verb", ["--verison"], /no option "--verison"\. Did you mean "--version"/],
  [
    "an option that is not there",
    ["run", "a", "--tll", "5s", "--", "true"],
    /Did you mean "--ttl"/,
  ],
  ["no name", ["run", "--", "true"], /needs the name of a lock: holdfast run NAME -- command/],
  ["no --", ["run", "a", "sleep", "5"], /goes after --, like: holdfast run a -- sleep 5/],
  ["no command", ["run", "a", "--"], /no command after --/],
  ["a bare number", ["run", "a", "--ttl", "30", "--", "true"], /unit, like .* perhaps 30s or 30ms/],
  ["a forgotten value", ["run", "a", "--label", "--shared", "--", "true"], /--label needs a value/],
  ["a value too many", ["run", "a", "--shared=yes", "--", "true"], /--shared takes no value/],
  ["a limit of 0", ["run", "a", "--limit", "0", "--", "true"], /whole number from 1/],
  ["an empty URL", ["run", "a", "--url=", "--", "true"], /--url is empty/],
  ["a URL that is none", ["run", "a", "--url", "locks.db", "--", "true"], /URL looks like/],
  ["an empty name", ["run", "", "--url", "memory:", "--", "true"], /./],
  [
    "a grace as long as the ttl",
    ["run", "a", "--url", "memory:", "--ttl", "1s", "--grace", "1s", "--", "true"],
    /--grace is 1000; it must be less than --ttl .*milliseconds/,
  ],
];

for (const [what, args, says] of MISTAKES) {
  test(`${what} is refused with 64 and a sentence that helps`, async (t) => {
    const { code, stdout, stderr } = await finish(holdfast(t, args));
    assert.equal(code, 64, stderr);
    assert.match(stderr, says);
    assert.equal(stderr.trim().split("\n").length, 1, "one line, no stack");
    assert.equal(stdout, "");
  });
}

test("an engine that this version lacks gives 78", async (t) => {
  const args = ["run", "a", "--url", "nonsense://host", "--", "true"];
  assert.equal((await finish(holdfast(t, args))).code, 78);
});

for (const [args, says] of [
  [[], /Usage[\s\S]*Examples/],
  [["--help"], /Usage[\s\S]*Examples/],
  [["help"], /Usage[\s\S]*Examples/],
  [["run", "--help"], /Options[\s\S]*Exit codes[\s\S]*Examples[\s\S]*Notes/],
  [["run", "a", "-h"], /Options/],
  [["help", "run"], /Options/],
  [["--version"], /^holdfast \d+\.\d+\.\d+\n$/],
] as const) {
  test(`"holdfast ${args.join(" ")}" helps on stdout and returns 0`, async (t) => {
    const { code, stdout, stderr } = await finish(holdfast(t, args));
    assert.equal(code, 0);
    assert.match(stdout, says);
    assert.equal(stderr, "");
    assert.ok(stdout.split("\n").every((line) => line.length <= 100));
  });
}

test("--help after -- belongs to the command", async (t) => {
  const args = ["run", "a", "--url", "memory:", "--", "printf", "%s", "--help"];
  const { stdout } = await finish(holdfast(t, args));
  assert.equal(stdout, "--help");
});

test("the version and the help need not load the library", async (t) => {
  // Where the library is not to be found.
  const folder = mkdtempSync(join(tmpdir(), "alone-"));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(dirname(MAIN), join(folder, "dist"), { recursive: true });
  cpSync(join(dirname(MAIN), "../package.json"), join(folder, "package.json"));
  for (const args of [["--version"], ["--help"], ["run", "--help"], ["init", "--help"]]) {
    const alone = new Running(t, process.execPath, [join(folder, "dist/main.js"), ...args]);
    const { code, stderr } = await finish(alone);
    assert.equal(code, 0, stderr);
  }
});
