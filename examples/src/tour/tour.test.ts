import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Facts, judge, overlapsIn } from "./facts.js";

const MAIN = fileURLToPath(new URL("main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tour-"));
after(() => rmSync(folder, { recursive: true }));

/** The tour in a temporary folder of its own; onText sees its output as it comes. */
async function tour(
  args: readonly string[],
  onText: (text: string, pid: number) => void = () => {},
) {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onText(stdout, child.pid!);
  });
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { code, stdout };
}

test("the tour's facts hold, and it leaves no file", { timeout: 200_000 }, async () => {
  const { code, stdout } = await tour(["--json"]);
  const facts = JSON.parse(stdout);
  assert.equal(code, 0, stdout);
  assert.equal(facts.ok, true);
  assert.equal(facts.increments.found, 16);
  assert.equal(facts.grants.length, 24);
  assert.equal(facts.overlaps, 0);
  assert.deepEqual([facts.unfenced.sold, facts.fenced.sold], [2, 1]);
  assert.equal(facts.fenced.staleRelease, "gone");
  assert.ok(facts.tookMs < 100_000, `took ${facts.tookMs} ms`);
  assert.ok(facts.claims.length >= 9);
  assert.deepEqual(readdirSync(folder), []);
});

test("Ctrl-C in the middle leaves no process and no file", { timeout: 200_000 }, async () => {
  const pids = new Set<number>();
  let interrupted = false;
  const { code } = await tour([], (text, pid) => {
    for (const [, found] of text.matchAll(/kill -(?:KILL|STOP) (\d+)/g)) pids.add(Number(found));
    // A stopped worker is the hardest to get rid of.
    if (!interrupted && text.includes("kill -STOP")) {
      interrupted = true;
      process.kill(pid, "SIGINT");
    }
  });
  assert.equal(code, 130);
  assert.equal(pids.size, 2);
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  assert.deepEqual(readdirSync(folder), []);
});

const FENCED: Facts["fenced"] = {
  sleeper: "a",
  token: 5n,
  ttlMs: 2_000,
  stoppedMs: 2_500,
  heir: "b",
  heirToken: 6n,
  afterGrantMs: 2_001,
  heldAfterwards: false,
  assertHeldThrew: "LeaseLostError",
  staleSale: "refused",
  heirSale: "accepted",
  sold: 1,
  staleRelease: "gone",
  heirHeldAfterwards: true,
  heirKnownToEngine: true,
};

const GOOD: Facts = {
  processes: 2,
  increments: { expected: 2, found: 2 },
  grants: [
    { holder: "a", token: 1n, from: 0, until: 10 },
    { holder: "b", token: 2n, from: 10, until: 20 },
  ],
  kill: { victim: "a", token: 3n, heir: "b", heirToken: 4n, takeoverMs: 5, ttlLeftMs: 9_000 },
  unfenced: { ...FENCED, staleSale: "accepted", sold: 2 },
  fenced: FENCED,
};

test("every claim can fail: facts that break a promise are told as broken", () => {
  assert.ok(judge(GOOD).every(({ holds }) => holds));
  const [first, second] = GOOD.grants;
  const bad: Partial<Facts>[] = [
    { increments: { expected: 2, found: 1 } },
    { grants: [first!, { ...second!, from: 9 }] },
    { grants: [first!, { ...second!, token: 1n }] },
    { kill: { ...GOOD.kill, takeoverMs: 20_000 } },
    { unfenced: { ...GOOD.unfenced, staleSale: "refused" } },
    { unfenced: { ...GOOD.unfenced, sold: 1 } },
    { fenced: { ...FENCED, afterGrantMs: 5 } },
    { fenced: { ...FENCED, heldAfterwards: true } },
    { fenced: { ...FENCED, staleSale: "accepted" } },
    { fenced: { ...FENCED, heirSale: "refused" } },
    { fenced: { ...FENCED, sold: 2 } },
    { fenced: { ...FENCED, staleRelease: "released" } },
    { fenced: { ...FENCED, heirKnownToEngine: false } },
  ];
  for (const change of bad) {
    const broken = judge({ ...GOOD, ...change }).filter(({ holds }) => !holds);
    assert.equal(broken.length, 1, JSON.stringify(Object.keys(change)));
  }
  assert.equal(overlapsIn(GOOD.grants), 0);
});
