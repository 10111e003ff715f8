// Processes on one file that see different clocks, pids or boot ids, as containers do.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import { canRun, SqliteTestServer } from "../support/test-server.fixture.js";

const OTHER_BOOT_TIME = ["unshare", "--time", "--boottime", "100000", "--fork", "--kill-child"];

test("a holder whose time namespace shows another boot time is alive to a rival outside", async (t) => {
  if (!canRun(t, OTHER_BOOT_TIME)) return;
  await using server = new SqliteTestServer();
  const holder = server.child("holder", [server.url, "a", '{"ttlMs":4000}'], OTHER_BOOT_TIME);
  assert.match((await holder.line())!, /^held/);
  await using locks = await connect(server.url);
  assert.ok((await locks.tryAcquire("a")) === null, "it is alive");
  await pause(6_000);
  assert.ok((await locks.tryAcquire("a")) === null, "it renews, so it lives longer than its ttl");
  holder.say("state");
  assert.equal(await holder.line(), "state true");
  holder.process.kill("SIGKILL");
  await holder.exited;
  // Its death cannot be proven here, so its ttl is waited out.
  await locks.acquire("a", { waitMs: 30_000 });
});

test("a holder and a waiter are alive to a rival whose time namespace shows another boot time", async (t) => {
  if (!canRun(t, OTHER_BOOT_TIME)) return;
  await using server = new SqliteTestServer();
  const holder = server.child("holder", [server.url, "a", '{"ttlMs":60000}']);
  assert.match((await holder.line())!, /^held/);
  const waiter = server.child("holder", [server.url, "a", '{"ttlMs":60000,"waitMs":60000}']);
  const head = await headOfQueue(server);
  const rival = server.child("rival", [server.url, "a"], OTHER_BOOT_TIME);
  assert.equal(await rival.line(), "busy");
  await rival.exited;
  assert.equal(await headOfQueue(server), head, "the waiter has not lost its place");
  holder.say("state");
  assert.equal(await holder.line(), "state true");
  holder.say("release");
  assert.equal(await holder.line(), "release released");
  assert.match((await waiter.line())!, /^held/);
});

test("a waiter in a time namespace with another boot time keeps its place when others open the file", async (t) => {
  if (!canRun(t, OTHER_BOOT_TIME)) return;
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a");
  const waiter = server.child("holder", [server.url, "a", '{"waitMs":60000}'], OTHER_BOOT_TIME);
  const head = await headOfQueue(server);
  assert.equal(await server.child("rival", [server.url, "a"]).line(), "busy");
  assert.equal(await headOfQueue(server), head, "the waiter has not lost its place");
  await lease.release();
  assert.match((await waiter.line())!, /^held/);
});

test("a time namespace that reuses the number of an earlier one is another frame", async (t) => {
  // The system reuses a number that no process uses any more. A sighting at an instant of the first
  // namespace means nothing at the instants of the second.
  const ahead = (seconds: number) => ["unshare", "--time", "--monotonic", `${seconds}`, "--fork"];
  if (!canRun(t, ahead(1))) return;
  await using server = new SqliteTestServer();
  const holder = server.child("holder", [server.url, "a", '{"ttlMs":60000}']);
  assert.match((await holder.line())!, /^held/);
  for (let seconds = 1_000; seconds <= 5_000; seconds += 1_000) {
    const rival = server.child("rival", [server.url, "a"], ahead(seconds));
    assert.equal(await rival.line(), "busy", `seen from ${seconds} s ahead`);
    await rival.exited;
  }
  holder.say("state");
  assert.equal(await holder.line(), "state true");
});

test("a holder is alive to a rival in its pid namespace, even if one of them sees another /proc", async (t) => {
  // Both are in the holder's pid namespace, where the holder is pid 1. One of them sees our /proc,
  // where pid 1 is another process with another start time.
  const asPid1 = ["unshare", "--pid", "--fork", "--kill-child"];
  const ownProc = ["unshare", "--mount", "sh", "-c", 'mount -t proc proc /proc && exec "$@"', "sh"];
  if (!canRun(t, [...asPid1, ...ownProc])) return;
  for (const [holderSees, rivalSees] of [
    [ownProc, []],
    [[], ownProc],
  ] as const) {
    await using server = new SqliteTestServer();
    const started = [...asPid1, ...holderSees];
    const holder = server.child("holder", [server.url, "a", '{"ttlMs":60000}'], started);
    assert.match((await holder.line())!, /^held/);
    const enter = ["nsenter", `--pid=/proc/${holder.process.pid}/ns/pid_for_children`];
    const rival = server.child("rival", [server.url, "a"], [...enter, ...rivalSees]);
    assert.equal(await rival.line(), "busy");
    holder.say("state");
    assert.equal(await holder.line(), "state true");
  }
});

test("a waiter in a container with its own boot id keeps its place when others open the file", async (t) => {
  await using server = new SqliteTestServer();
  const bootId = join(server.folder, "boot_id");
  writeFileSync(bootId, "00000000-0000-4000-8000-000000000001\n");
  const mount = `mount --bind "${bootId}" /proc/sys/kernel/random/boot_id && exec "$@"`;
  const container = ["unshare", "--mount", "sh", "-c", mount, "sh"];
  if (!canRun(t, container)) return;
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a");
  const waiter = server.child("holder", [server.url, "a", '{"waitMs":60000}'], container);
  const head = await headOfQueue(server);
  assert.equal(await server.child("rival", [server.url, "a"]).line(), "busy");
  assert.equal(await headOfQueue(server), head, "the waiter has not lost its place");
  await lease.release();
  assert.match((await waiter.line())!, /^held/);
});

/**
 * The grantId at the head of the queue. A waiter that lost its place returns with another grantId.
 */
async function headOfQueue(server: SqliteTestServer): Promise<unknown> {
  const until = systemClock.now() + 30_000;
  for (;;) {
    const [row] = await server.sql("SELECT grant_id FROM waiters ORDER BY seq LIMIT 1");
    if (row !== undefined) return row.grant_id;
    assert.ok(systemClock.now() < until, "no waiter joined the queue");
    await pause(10);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
