import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startRedis } from "@holdfast/servers";
import type { Locks } from "holdfast";
import { holdfast, MAIN, scratch } from "../test/holdfast.fixture.js";

/** Writes the host's monotonic time to a file every few milliseconds. */
const BEATING = `
  const { writeFileSync } = require("node:fs");
  const [file, stubborn] = process.argv.slice(1);
  if (stubborn) process.on("SIGTERM", () => console.log("ignored SIGTERM"));
  setInterval(() => writeFileSync(file, String(process.hrtime.bigint())), 5);
  console.log("up");
`;

async function revoke(locks: Locks): Promise<void> {
  const { holders } = await locks.inspect("a");
  assert.equal(await locks.revoke("a", { token: holders[0]!.token }), "revoked");
}

test("a revoked run asks its command to stop, gives back, and returns 76", async (t) => {
  const { url, locks } = await scratch(t);
  const script = "trap 'echo tidied; exit 0' TERM; echo up; while :; do sleep 0.05; done";
  const running = holdfast(t, ["run", "a", "--url", url, "--ttl", "60s", "--", "sh", "-c", script]);
  await running.until("stdout", /up/);
  const revokedAt = performance.now();
  await revoke(locks);
  await using _next = await locks.acquire("a", { waitMs: 50_000 });
  assert.ok(performance.now() - revokedAt < 40_000, "the successor came before the ttl was over");
  assert.equal(await running.ended, 76);
  assert.match(running.stdout, /tidied/);
  assert.match(running.stderr, /^holdfast: lease of "a" .* revoked; the command gets SIGTERM, and/);
});

test("a command that ignores SIGTERM is killed, with what it started, before the next holder", async (t) => {
  const { url, folder, locks } = await scratch(t);
  const beat = join(folder, "beat");
  // The shell stands between: the program that must stop is a grandchild.
  const script = `"${process.execPath}" -e '${BEATING}' "${beat}" stubborn; true`;
  const args = ["run", "a", "--url", url, "--ttl", "3s", "--grace", "1s"];
  const running = holdfast(t, [...args, "--", "sh", "-c", script]);
  await running.until("stdout", /up/);
  await revoke(locks);
  await using _next = await locks.acquire("a", { waitMs: 60_000 });
  const grantedAt = process.hrtime.bigint();
  assert.equal(await running.ended, 76);
  assert.match(running.stdout, /ignored SIGTERM/);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(BigInt(readFileSync(beat, "utf8")) < grantedAt, "the last beat was before the grant");
});

test("a run that was stopped past its ttl kills its command as soon as it goes on", async (t) => {
  const { url, folder, locks } = await scratch(t);
  const beat = join(folder, "beat");
  const command = [process.execPath, "-e", BEATING, beat, "stubborn"];
  const args = ["run", "a", "--url", url, "--ttl", "4s", "--json", "--", ...command];
  const running = holdfast(t, args);
  await running.until("stdout", /up/);
  running.signal("SIGSTOP");
  await using next = await locks.acquire("a", { waitMs: 60_000 });
  const continuedAt = process.hrtime.bigint();
  running.signal("SIGCONT");
  assert.equal(await running.ended, 76);
  const lastBeatMs = Number(BigInt(readFileSync(beat, "utf8")) - continuedAt) / 1e6;
  assert.ok(lastBeatMs < 3_000, `the command went on for ${lastBeatMs} ms`);
  assert.ok(next.held, "the successor keeps its lease");
  const events = running.stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  assert.deepEqual(
    events.map(({ event }) => event),
    ["acquired", "lost", "released"],
  );
  assert.equal(events[1].killInMs, 0);
  assert.deepEqual([events[2].outcome, events[2].exitCode], ["gone", 76]);
});

test("a lock that is gone when the command ends gives 76, whatever the command returned", async (t) => {
  const { url } = await scratch(t);
  // The command ends its own grant at the backend and is done before anybody could tell us.
  const script = `
    import { connect } from ${JSON.stringify(import.meta.resolve("holdfast"))};
    const locks = await connect(${JSON.stringify(url)});
    await locks.revoke("a", { token: BigInt(process.env.HOLDFAST_TOKEN), force: true });
    process.exit(0);
  `;
  const command = [process.execPath, "--no-warnings", "--input-type=module", "-e", script];
  const running = holdfast(t, ["run", "a", "--url", url, "--", ...command]);
  assert.equal(await running.ended, 76);
  assert.match(running.stderr, /lost/);
});

const noProc = process.platform === "linux" ? false : "only Linux shows what a process started";

/** As the kernel says; one that is dead and not yet collected runs no more. */
function runs(pid: string): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

test("a command whose lock is gone at the backend gets SIGKILL at once, and run says so", async (t) => {
  const { url, locks } = await scratch(t);
  const script = "trap 'echo tidied; exit 0' TERM; echo up; while :; do sleep 0.05; done";
  const running = holdfast(t, ["run", "a", "--url", url, "--ttl", "3s", "--", "sh", "-c", script]);
  await running.until("stdout", /up/);
  const { holders } = await locks.inspect("a");
  await locks.revoke("a", { token: holders[0]!.token, force: true });
  assert.equal(await running.ended, 76);
  assert.doesNotMatch(running.stdout, /tidied/);
  assert.match(running.stderr, /the command gets SIGKILL at once/);
});

test("a loss ends what the command started, also where its parent has ended", {
  skip: noProc,
}, async (t) => {
  const { url, locks } = await scratch(t);
  // Orphans: one of the same session, one of its own, one of a run inside this run.
  const inner = `"${process.execPath}" "${MAIN}" run inner --url memory:`;
  const script = `
    (sleep 301 & echo pid $!)
    (setsid sh -c 'echo pid $$; exec sleep 302' &)
    ${inner} -- sh -c '(sleep 303 & echo pid $!)'
    echo up; exec sleep 304`;
  const running = holdfast(t, ["run", "a", "--url", url, "--ttl", "6s", "--", "sh", "-c", script]);
  await running.until("stdout", /up/);
  await running.until("stdout", /(pid \d+[\s\S]*){3}/);
  const pids = [...running.stdout.matchAll(/pid (\d+)/g)].map(([, pid = ""]) => pid);
  assert.deepEqual(pids.map(runs), [true, true, true]);
  await revoke(locks);
  assert.equal(await running.ended, 76);
  assert.deepEqual(pids.map(runs), [false, false, false]);
});

test("after a loss, run does not wait for a backend that does not answer", async (t) => {
  await using server = await startRedis();
  const args = ["run", "a", "--url", server.url, "--ttl", "3s", "--", "sh", "-c", "echo up; cat"];
  const running = holdfast(t, args);
  await running.until("stdout", /up/);
  server.pause();
  await running.until("stderr", /the command gets SIGTERM/);
  const lostAt = performance.now();
  assert.equal(await running.ended, 76);
  server.resume();
  // Three tries of five seconds each would be too much; the rest is for a machine that is busy.
  const tookMs = performance.now() - lostAt;
  assert.ok(tookMs < 10_000, `it ended ${tookMs} ms after the loss`);
});
