// Which processes are dead, which only seem dead, and how long each delays a waiter.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { isProvenDead, readProcessIdentity } from "../../file/process-identity.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

const LONG_TTL = '{"ttlMs":60000}';
/** Half the ttl: a waiter that succeeds in this time did not wait until the lease expired. */
const PATIENCE_MS = 30_000;

test("a holder killed with SIGKILL is replaced long before its ttl is over", async () => {
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "a", LONG_TTL]);
  await child.line();
  child.process.kill("SIGKILL");
  await child.exited;
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a", { waitMs: PATIENCE_MS });
  assert.ok(lease.held);
});

test("a holder killed while another process waits is replaced within two heartbeats", async () => {
  await soon(1_000, async () => {
    await using server = new SqliteTestServer();
    const child = server.child("holder", [server.url, "a", LONG_TTL]);
    await child.line();
    await using locks = await connect(server.url);
    const waiting = locks.acquire("a", { waitMs: PATIENCE_MS });
    await waitForWaiters(locks, "a", 1);
    child.process.kill("SIGKILL");
    return await timed(() => waiting);
  });
});

test("a dead holder's lock-delay counts from when its death is noticed", async () => {
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":60000,"lockDelayMs":700}']);
  await child.line();
  child.process.kill("SIGKILL");
  await child.exited;
  // Opening the file looks for dead processes.
  const startedAt = systemClock.now();
  await using locks = await connect(server.url);
  await locks.acquire("a", { waitMs: PATIENCE_MS });
  const tookMs = systemClock.now() - startedAt;
  assert.ok(tookMs >= 690 && tookMs < PATIENCE_MS, `took ${tookMs} ms`);
});

test("a stopped holder is not dead, so its ttl is waited out", async () => {
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":4000}']);
  await child.line();
  child.process.kill("SIGSTOP");
  await using locks = await connect(server.url);
  assert.equal(await locks.tryAcquire("a"), null);
  await using lease = await locks.acquire("a", { waitMs: PATIENCE_MS });
  child.process.kill("SIGCONT");
  child.say("state");
  assert.equal(await child.line(), "state false");
  child.say("release");
  assert.equal(await child.line(), "release gone");
  assert.equal(await locks.check(lease.sequencer), true, "the successor keeps its lease");
});

test("a pid that belongs to a later process proves death; another frame or pid namespace proves nothing", () => {
  const self = readProcessIdentity();
  const child = spawnSync(process.execPath, ["-e", ""]);
  assert.equal(isProvenDead({ ...self, pid: child.pid }, self), true, "no such process");
  assert.equal(
    isProvenDead({ ...self, pid: process.ppid, started: "1" }, self),
    true,
    "another start time",
  );
  const parent = { ...self, pid: process.ppid, started: startOf(process.ppid) };
  assert.equal(isProvenDead(parent, self), false, "the same start time");
  assert.equal(isProvenDead({ ...self, pid: child.pid, frame: "other" }, self), false);
  assert.equal(isProvenDead({ ...self, pid: child.pid, pidNamespace: "pid:[1]" }, self), false);
  assert.equal(
    isProvenDead(
      { ...self, pid: child.pid, pidNamespace: "unknown" },
      { ...self, pidNamespace: "unknown" },
    ),
    false,
  );
});

test("a dead holder in another pid namespace keeps its lease until the ttl is over", async () => {
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":4000}']);
  await child.line();
  await server.sql("UPDATE peers SET pid_namespace = 'pid:[1]'");
  child.process.kill("SIGKILL");
  await child.exited;
  await using locks = await connect(server.url);
  assert.equal(await locks.tryAcquire("a"), null, "nobody here can know that it is dead");
  await locks.acquire("a", { waitMs: PATIENCE_MS });
});

test("a grant of another boot is waited out on the observer's own clock", async () => {
  // An instant of another frame means nothing here, even if it seems long past.
  await using server = new SqliteTestServer();
  const before = await connect(server.url);
  await before.acquire("a", { ttlMs: 800, renew: false });
  await server.sql("UPDATE grants SET frame = 'boot/other', expires_at = 1");
  const startedAt = systemClock.now();
  await using after = await connect(server.url);
  await after.acquire("a", { waitMs: PATIENCE_MS });
  const tookMs = systemClock.now() - startedAt;
  assert.ok(tookMs >= 780 && tookMs < PATIENCE_MS, `took ${tookMs} ms`);
  await before.close();
});

test("a grant of another frame is waited out from its latest renewal", async () => {
  await using server = new SqliteTestServer();
  const before = await connect(server.url);
  await before.acquire("a", { ttlMs: 3_000, renew: false });
  await server.sql("UPDATE grants SET frame = 'boot/other', expires_at = 1");
  await using after = await connect(server.url);
  assert.equal(await after.tryAcquire("a"), null);
  await new Promise((done) => setTimeout(done, 2_000));
  await server.sql("UPDATE grants SET version = version + 1");
  assert.equal(await after.tryAcquire("a"), null);
  await new Promise((done) => setTimeout(done, 1_500));
  assert.equal(
    await after.tryAcquire("a"),
    null,
    "3.5 s after the first sight, 1.5 s after the second",
  );
  await after.acquire("a", { waitMs: PATIENCE_MS });
  await before.close();
});

test("containers that share a volume exclude each other, even if their clocks differ", async (t) => {
  if (process.getuid?.() !== 0) {
    t.diagnostic("needs root to make namespaces; npm test as root covers it");
    return;
  }
  // The container's monotonic clock is 5,000 s ahead of ours, and it has its own pids.
  const container = ["unshare", "--time", "--monotonic", "5000", "--pid", "--fork", "--kill-child"];
  execFileSync(container[0]!, [...container.slice(1), "true"]);
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":4000}'], container);
  assert.match((await child.line())!, /^held/);
  await using locks = await connect(server.url);
  assert.equal(await locks.tryAcquire("a"), null);
  await new Promise((done) => setTimeout(done, 6_000));
  assert.equal(await locks.tryAcquire("a"), null, "it renews, so it lives longer than its ttl");
  child.process.kill("SIGKILL");
  await child.exited;
  const lease = await locks.acquire("a", { waitMs: PATIENCE_MS });
  // Now the container waits for us, and our release wakes it.
  const waiter = server.child(
    "holder",
    [server.url, "a", '{"ttlMs":4000,"waitMs":60000}'],
    container,
  );
  await waitForWaiters(locks, "a", 1);
  await lease.release();
  assert.match((await waiter.line())!, /^held/);
});

test("a lost wake-up delays a waiter by one heartbeat, and it still gets its turn", async () => {
  await soon(1_500, async () => {
    await using server = new SqliteTestServer();
    const child = server.child("holder", [server.url, "a", LONG_TTL]);
    await child.line();
    await using locks = await connect(server.url);
    const waiting = locks.acquire("a", { waitMs: PATIENCE_MS });
    await waitForWaiters(locks, "a", 1);
    rmSync(`${server.path}-bells`, { recursive: true });
    child.say("release");
    return await timed(() => waiting);
  });
});

test("dead waiters in the queue do not delay the waiters behind them", async () => {
  await soon(500, async () => {
    await using server = new SqliteTestServer();
    await using locks = await connect(server.url);
    const lease = await locks.acquire("a");
    const dead = [1, 2, 3].map(() => server.child("holder", [server.url, "a", LONG_TTL]));
    await waitForWaiters(locks, "a", 3);
    await using other = await connect(server.url);
    const waiting = other.acquire("a", { waitMs: PATIENCE_MS });
    await waitForWaiters(locks, "a", 4);
    for (const child of dead) {
      child.process.kill("SIGKILL");
      await child.exited;
    }
    return await timed(async () => {
      await lease.release();
      await waiting;
    });
  });
});

test("a stopped waiter at the head delays the waiters behind it by one claim window", async () => {
  await soon(3_000, async () => {
    await using server = new SqliteTestServer();
    await using locks = await connect(server.url);
    const lease = await locks.acquire("a");
    const patient = '{"ttlMs":60000,"waitMs":60000}';
    const stopped = server.child("holder", [server.url, "a", patient]);
    await waitForWaiters(locks, "a", 1);
    await using other = await connect(server.url);
    const waiting = other.acquire("a", { waitMs: PATIENCE_MS });
    await waitForWaiters(locks, "a", 2);
    stopped.process.kill("SIGSTOP");
    const tookMs = await timed(async () => {
      await lease.release();
      await waiting;
    });
    stopped.process.kill("SIGCONT");
    await (await waiting).release();
    assert.match((await stopped.line())!, /^held/, "it joins the queue again and gets its turn");
    return tookMs;
  });
});

test("a process that opens the file removes the rows of dead processes", async () => {
  await using server = new SqliteTestServer();
  const child = server.child("holder", [server.url, "left", LONG_TTL]);
  await child.line();
  child.process.kill("SIGKILL");
  await child.exited;
  await (await connect(server.url)).close();
  for (const table of ["grants", "waiters", "peers", "sightings", "tombstones"]) {
    assert.deepEqual(await server.sql(`SELECT * FROM ${table}`), [], table);
  }
});

async function waitForWaiters(
  locks: Awaited<ReturnType<typeof connect>>,
  resource: string,
  count: number,
): Promise<void> {
  const until = systemClock.now() + PATIENCE_MS;
  while ((await locks.inspect(resource)).waiters.length < count) {
    assert.ok(systemClock.now() < until, `fewer than ${count} waiters joined the queue`);
    await new Promise((look) => setTimeout(look, 10));
  }
}

function startOf(pid: number): string {
  const stat = execFileSync("cat", [`/proc/${pid}/stat`], { encoding: "utf8" });
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]!;
}
