import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { finish, holdfast, scratch } from "../test/holdfast.fixture.js";

test("a run that waits says for whom, a line per change, and goes on when it is its turn", async (t) => {
  const { url, locks } = await scratch(t);
  const first = await locks.acquire("a", { label: "the nightly job" });
  const running = holdfast(t, ["run", "a", "--url", url, "--", "echo", "done"]);
  await running.until("stderr", /\n/);
  assert.equal(
    running.stderr,
    `holdfast: waiting for "a", held by the nightly job (token ${first.token})\n`,
  );
  const { waiters } = await locks.inspect("a");
  assert.match(waiters[0]?.label ?? "", new RegExp(`/${running.pid} echo$`));
  await new Promise((resolve) => setTimeout(resolve, 1_200));
  assert.equal(running.stderr.split("\n").length, 2, "nothing changed, so nothing was said");
  await first.release();
  const { code, stdout, stderr } = await finish(running);
  assert.deepEqual([code, stdout], [0, "done\n"]);
  assert.match(stderr, /\nholdfast: got "a" after \d+\.\d s \(token \d+\)\n$/);
});

test("a run behind others says how many wait before it; --json and --quiet print only what they promise", async (t) => {
  const { url, locks } = await scratch(t);
  const held = await locks.acquire("a");
  const start = (flag: string[]) => holdfast(t, ["run", "a", "--url", url, ...flag, "--", "true"]);
  const json = start(["--json"]);
  await json.until("stderr", /\n/);
  const event = JSON.parse(json.stderr);
  const [{ remainingMs, ...holder }] = event.holders;
  assert.ok(remainingMs > 0);
  assert.deepEqual(holder, { label: "the test", token: String(held.token), mode: "exclusive" });
  const quiet = start(["-q"]);
  const text = start([]);
  await text.until("stderr", /[12] before us in the queue/);
  await held.release();
  for (const running of [json, quiet, text]) assert.equal((await finish(running)).code, 0);
  assert.equal(quiet.stderr, "");
  assert.deepEqual(
    json.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).event),
    ["waiting", "acquired", "released"],
  );
});

test("run returns 75 and names the holder when --wait is over", async (t) => {
  const { url, locks } = await scratch(t);
  await using _held = await locks.acquire("a");
  const args = ["run", "a", "--url", url, "--wait", "300ms", "--json", "--", "echo", "no"];
  const { code, stdout, stderr } = await finish(holdfast(t, args));
  assert.deepEqual([code, stdout], [75, ""]);
  const failed = JSON.parse(stderr.trim().split("\n").at(-1) ?? "");
  assert.equal(failed.code, "ACQUIRE_TIMEOUT");
  const waitedMs = Number(/within (\d+) ms; held by the test \(token/.exec(failed.message)?.[1]);
  assert.ok(waitedMs >= 300, failed.message);
  assert.deepEqual((await locks.inspect("a")).waiters, []);
});

test("--wait 0s --quiet prints nothing and returns 75; --json still prints the failure", async (t) => {
  const { url, locks } = await scratch(t);
  await using _held = await locks.acquire("a");
  const say = (flags: string[]) =>
    finish(holdfast(t, ["run", "a", "--url", url, ...flags, "--", "echo", "no"]));
  const skipped = await say(["--wait", "0s", "--quiet"]);
  assert.deepEqual([skipped.code, skipped.stdout, skipped.stderr], [75, "", ""]);
  assert.match((await say(["--wait", "0s"])).stderr, /"a" is held by the test/);
  assert.match((await say(["--wait", "0s", "--quiet", "--json"])).stderr, /"ACQUIRE_TIMEOUT"/);
  // A caller who waited until the end wants to know why.
  assert.match((await say(["--wait", "100ms", "--quiet"])).stderr, /held by the test/);
});

test("six runs at once exclude each other: no increment is lost", async (t) => {
  const { url, folder } = await scratch(t);
  const file = join(folder, "number");
  writeFileSync(file, "0");
  const script = `n=$(cat "${file}"); sleep 0.05; echo $((n + 1)) > "${file}"; echo $HOLDFAST_TOKEN`;
  const args = ["run", "a", "--url", url, "--", "sh", "-c", script];
  const ends = await Promise.all(Array.from({ length: 6 }, () => finish(holdfast(t, args))));
  assert.deepEqual(
    ends.map(({ code }) => code),
    [0, 0, 0, 0, 0, 0],
  );
  assert.equal(Number(readFileSync(file, "utf8")), 6);
  assert.equal(new Set(ends.map(({ stdout }) => stdout)).size, 6, "every run had its own token");
});

test("--shared runs share and keep the others out; --limit counts", async (t) => {
  const { url, locks } = await scratch(t);
  const wait = (name: string, ...flags: string[]) =>
    holdfast(t, ["run", name, "--url", url, ...flags, "--", "sh", "-c", "echo up; cat"]);
  const busy = async (name: string, ...flags: string[]) => {
    const args = ["run", name, "--url", url, ...flags, "--wait", "0s", "--", "true"];
    return (await finish(holdfast(t, args))).code;
  };
  const readers = [wait("doc", "--shared"), wait("doc", "--shared")];
  const permits = [wait("gpu", "--limit", "2"), wait("gpu", "--limit", "2", "--shared")];
  for (const running of [...readers, ...permits]) await running.until("stdout", /up/);
  assert.equal(await busy("doc"), 75, "a writer waits for readers");
  assert.equal(await busy("doc", "--shared"), 0);
  assert.equal(await busy("gpu", "--limit", "2"), 75, "the third is one too many");
  const other = ["run", "gpu", "--url", url, "--limit", "3", "--wait", "0s", "--", "true"];
  const refused = await finish(holdfast(t, other));
  assert.equal(refused.code, 64);
  assert.match(refused.stderr, /limit 2.*limit 3/);
  assert.equal((await locks.inspect("gpu")).holders.length, 2);
  for (const running of [...readers, ...permits]) assert.equal((await finish(running)).code, 0);
  assert.equal(await busy("doc"), 0);
});

test("a run inside a run of the same lock learns that it waits for its own parent", async (t) => {
  const { url } = await scratch(t);
  const { MAIN } = await import("../test/holdfast.fixture.js");
  const inner = [process.execPath, "--no-warnings", MAIN, "run", "a", "--url", url];
  const args = ["run", "a", "--url", url, "--", ...inner, "--wait", "1s", "--", "true"];
  const { code, stderr } = await finish(holdfast(t, args));
  assert.equal(code, 75);
  assert.match(stderr, /that run started this one, so each waits for the other/);
});

test("--wait 0s does not wait, and names the holder without a waiting time", async (t) => {
  const { url, locks } = await scratch(t);
  const held = await locks.acquire("a");
  const args = ["run", "a", "--url", url, "--wait", "0s", "--", "echo", "no"];
  const { code, stderr } = await finish(holdfast(t, args));
  assert.equal(code, 75);
  assert.equal(stderr, `holdfast: "a" is held by the test (token ${held.token})\n`);
  await held.release();
});
