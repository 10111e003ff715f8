import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { finish, holdfast, Running, scratch } from "../test/holdfast.fixture.js";

const MEMORY = ["--url", "memory:"];

for (const [script, expected] of [
  ["exit 0", 0],
  ["exit 7", 7],
  ["kill -TERM $$", 143],
  ["kill -KILL $$", 137],
] as const) {
  test(`run returns ${expected} when its command does "${script}"`, async (t) => {
    const { code } = await finish(holdfast(t, ["run", "a", ...MEMORY, "--", "sh", "-c", script]));
    assert.equal(code, expected);
  });
}

test("run returns 127 for a command that is not there, 126 for one that is no program", async (t) => {
  const missing = await finish(holdfast(t, ["run", "a", ...MEMORY, "--", "no-such-command"]));
  assert.equal(missing.code, 127);
  assert.match(missing.stderr, /there is no command "no-such-command"/);
  const { folder } = await scratch(t);
  const unfit = await finish(holdfast(t, ["run", "a", ...MEMORY, "--", join(folder, "locks.db")]));
  assert.equal(unfit.code, 126);
  assert.match(unfit.stderr, /cannot be executed \(EACCES\)/);
});

test("the command finds the lock, the token and the sequencer in its environment", async (t) => {
  const script = 'echo "$HOLDFAST_LOCK|$HOLDFAST_TOKEN|$HOLDFAST_SEQUENCER"';
  const { url, locks } = await scratch(t);
  const args = ["run", "näme b", "--url", url, "--", "sh", "-c", script];
  const { stdout } = await finish(holdfast(t, args));
  const [name, token, sequencer] = stdout.trim().split("|");
  assert.equal(name, "näme b");
  assert.equal(sequencer, `exclusive:${token}:n%C3%A4me%20b`);
  assert.equal(await locks.check(sequencer ?? ""), false, "it was given back");
});

test("run warns about a lock in memory:, unless --quiet is given", async (t) => {
  const says = async (flags: string[]) =>
    (await finish(holdfast(t, ["run", "a", ...MEMORY, ...flags, "--", "true"]))).stderr;
  const warning = /a lock of memory: is seen by nobody else/;
  assert.match(await says([]), warning);
  assert.equal(await says(["--quiet"]), "");
  const events = (await says(["--json"])).trim().split("\n");
  const told = events.map((line) => JSON.parse(line)).find(({ event }) => event === "warned");
  assert.match(told.message, warning);
});

test("input and output pass through untouched", async (t) => {
  const { url } = await scratch(t);
  const running = holdfast(t, ["run", "a", "--url", url, "--", "sh", "-c", "cat; echo err >&2"]);
  const text = "line\n".repeat(50_000);
  running.type(text);
  const { code, stdout, stderr } = await finish(running);
  assert.equal(code, 0);
  assert.equal(stdout, text);
  assert.equal(stderr, "err\n", "run itself prints nothing");
});

test("--json prints the grant and the end, one object a line", async (t) => {
  const { url } = await scratch(t);
  const args = ["run", "a", "--url", url, "--json", "--shared", "--", "sh", "-c", "exit 3"];
  const { stdout, stderr } = await finish(holdfast(t, args));
  assert.equal(stdout, "");
  const [acquired, released, ...rest] = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(rest, []);
  const { waitedMs, ...grant } = acquired;
  assert.ok(waitedMs >= 0);
  const subject = { resource: "a", token: "1" };
  assert.deepEqual(grant, {
    event: "acquired",
    ...subject,
    mode: "shared",
    sequencer: "shared:1:a",
  });
  assert.deepEqual(released, { event: "released", ...subject, outcome: "released", exitCode: 3 });
});

test("--url names the engine, else HOLDFAST_URL, else a file in the user's state folder", async (t) => {
  const { url, folder, locks } = await scratch(t);
  const command = ["--", "sh", "-c", "echo $HOLDFAST_TOKEN"];
  const token = async (args: string[], env: NodeJS.ProcessEnv) => {
    const { stdout, stderr } = await finish(holdfast(t, ["run", "a", ...args, ...command], env));
    assert.equal(stderr, "");
    return Number(stdout);
  };
  const first = await token([], { HOLDFAST_URL: url });
  const second = await token(["--url", url], { HOLDFAST_URL: "nonsense" });
  assert.ok(second > first);
  await using lease = await locks.acquire("a");
  assert.ok(lease.token > BigInt(second), "it was the same file");
  const state = join(folder, "state");
  assert.ok((await token([], { XDG_STATE_HOME: state, HOME: folder })) > 0);
  assert.deepEqual(readdirSync(state), ["holdfast"]);
});

test("no message shows the password of the URL", async (t) => {
  const url = "redis://user:s3cret@127.0.0.1:1/0?token=t0ken";
  for (const flags of [[], ["--json"]]) {
    const args = ["run", "a", "--url", url, ...flags, "--", "true"];
    const { code, stderr } = await finish(holdfast(t, args));
    assert.ok(code !== 0 && stderr !== "");
    assert.doesNotMatch(stderr, /s3cret|t0ken/);
  }
});

test("a reader of our messages that goes away ends neither us nor the command", async (t) => {
  const { url, locks } = await scratch(t);
  const held = await locks.acquire("a");
  const inner = `"${process.execPath}" --no-warnings "$0" run a --url ${url} -- sh -c 'echo ran; exit 5'`;
  const script = `{ ${inner} 2>&1 >&3 | exec true; } 3>&1; echo ended`;
  const { MAIN } = await import("../test/holdfast.fixture.js");
  const running = new Running(t, "bash", ["-c", script, MAIN]);
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  await held.release();
  const { stdout } = await finish(running);
  assert.equal(stdout, "ran\nended\n");
});
