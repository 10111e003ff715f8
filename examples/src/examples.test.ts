import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startRedis } from "@holdfast/servers";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "examples-"));
after(() => rmSync(folder, { recursive: true }));

const OUTPUT: Readonly<Record<string, string>> = {
  first: `the late holder is refused: FencedOutError
50 are due
`,
  run: `published 42
while it is held, tryAcquire gives null
`,
  shared: `2 readers at once
the writer waits for them
the writer had its turn
6 jobs, at most 2 on the gpu at once
the next one gets in at once
`,
  once: `done: 3 files
somebody else does it
backed up
`,
  losing: `^${["a timer", "a child process", "code of ours"]
    .map((tool) => `${tool} stopped at table \\d+: revoked, more than 2 s to tidy up\\n`)
    .join("")}$`,
  retry: `threeTries: granted at try 3
patient: granted at try 3
onlyIfNothingHappened: granted at try 3
threeTries gives up with EngineError
`,
  events: `the example got invoice:42, waited not long
invoice:42: released
the example got invoice:43, waited not long
invoice:43: lost, max-hold
invoice:43: gone
run rejects with LeaseLostError
`,
  "who-holds": `held by deploy of host 1, token 1
place 0: deploy of host 2
deploy: 1 held, 1 waiting
revoked
the backend answers
its run rejects with LeaseLostError
held by deploy of host 2, token 2
the next one holds it
`,
  "testing-your-code": `sent 1 reminder, and none after the pause
`,
};

// The address that readers see. No test may rely on a server there.
const REDIS = '"redis://127.0.0.1:6379"';
const ON_REDIS = ["first"];

/** The arguments of node that run an example; on Redis, with the address of a server of this test. */
async function argumentsFor(name: string, t: TestContext): Promise<string[]> {
  const path = join(here, `${name}.js`);
  if (!ON_REDIS.includes(name)) return [path];
  const redis = await startRedis();
  t.after(() => redis.stop());
  const program = readFileSync(path, "utf8");
  assert.ok(program.includes(REDIS));
  return ["--input-type=module", "--eval", program.replace(REDIS, JSON.stringify(redis.url))];
}

for (const [name, expected] of Object.entries(OUTPUT)) {
  test(`example ${name} runs, says what it should and leaves no file`, async (t) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--no-warnings", ...(await argumentsFor(name, t))],
      // A program that is not a file finds its imports from the working directory.
      { cwd: here, env: { ...process.env, TMPDIR: folder }, timeout: 120_000 },
    );
    if (expected.startsWith("^")) assert.match(stdout, new RegExp(expected));
    else assert.equal(stdout, expected);
    assert.deepEqual(readdirSync(folder), []);
  });
}

test("every example is run here", () => {
  const notExamples = ["temporary-folder", "open-sqlite", "invoices"];
  // The sources, because a compiled file may outlive its own.
  const programs = readdirSync(join(here, "../src"))
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => file.slice(0, -3))
    .filter((name) => !notExamples.includes(name));
  assert.deepEqual(programs.sort(), Object.keys(OUTPUT).sort());
});
