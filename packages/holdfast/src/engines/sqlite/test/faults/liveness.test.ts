// Who is dead, who only attempts dead, and what each costs a waiter.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { isProvenDead, readProcessIdentity } from "../../file/process-identity.js";
import { TestServer } from "../support/test-server.fixture.js";

const LONG_TTL = '{"ttlMs":60000}';
/** Half of what a holder would be waited for whose death nobody notices. */
const PATIENCE_MS = 30_000;

test("a holder killed with SIGKILL is succeeded long before its ttl", async () => {
  await using server = new TestServer();
  const child = server.child("holder", [server.url, "a", LONG_TTL]);
  await child.line();
  child.process.kill("SIGKILL");
  await child.exited;
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a", { waitMs: PATIENCE_MS });
  assert.ok(lease.held);
});

test("a holder killed while somebody already waits is succeeded within two heartbeats", async () => {
  await soon(1_000, async () => {
    await using server = new TestServer();
    const child = server.child("holder", [server.url, "a", LONG_TTL]);
    await child.line();
    await using locks = await connect(server.url);
    const waiting = locks.acquire("a", { waitMs: PATIENCE_MS });
    await waitForWaiters(locks, "a", 1);
    child.process.kill("SIGKILL");
    return await timed(() => waiting);
  });
});

test("a dead holder's lock-delay is respected, counted from when its death was noticed", async () => {
  await using server = new TestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":60000,"lockDelayMs":700}']);
  await child.line();
  child.process.kill("SIGKILL");
  await child.exited;
  // Whoever opens the file attempts for the dead.
  const startedAt = systemClock.now();
  await using locks = await connect(server.url);
  await locks.acquire("a", { waitMs: PATIENCE_MS });
  const tookMs = systemClock.now() - startedAt;
  assert.ok(tookMs >= 690 && tookMs < PATIENCE_MS, `took ${tookMs} ms`);
});

test("a stopped holder is not dead: its ttl is waited out", async () => {
  await using server = new TestServer();
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

test("a pid that now belongs to a later process is proof of death; one we may not signal is not", () => {
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

test("a dead holder in another pid namespace is waited out, not reclaimed", async () => {
  await using server = new TestServer();
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
  // Instants of another frame are meaningless here: one that attempts long over must not count.
  await using server = new TestServer();
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

test("a grant of another frame that is renewed meanwhile starts its life again", async () => {
  await using server = new TestServer();
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

test("containers that share a volume exclude each other, whatever their clocks say", async (t) => {
  if (process.getuid?.() !== 0) {
    t.diagnostic("needs root to make namespaces; npm test as root covers it");
    return;
  }
  // Its monotonic clock is 5,000 s ahead of ours and its pids are its own.
  const container = ["unshare", "--time", "--monotonic", "5000", "--pid", "--fork", "--kill-child"];
  execFileSync(container[0]!, [...container.slice(1), "true"]);
  await using server = new TestServer();
  const child = server.child("holder", [server.url, "a", '{"ttlMs":4000}'], container);
  assert.match((await child.line())!, /^held/);
  await using locks = await connect(server.url);
  assert.equal(await locks.tryAcquire("a"), null);
  await new Promise((done) => setTimeout(done, 6_000));
  assert.equal(await locks.tryAcquire("a"), null, "it renews, so it lives, longer than its ttl");
  child.process.kill("SIGKILL");
  await child.exited;
  const lease = await locks.acquire("a", { waitMs: PATIENCE_MS });
  // And the other way round: the container waits for us, and is woken by our release.
  const waiter = server.child(
    "holder",
    [server.url, "a", '{"ttlMs":4000,"waitMs":60000}'],
    container,
  );
  await waitForWaiters(locks, "a", 1);
  await lease.release();
  assert.match((await waiter.line())!, /^held/);
});

test("a bell that is lost costs a heartbeat, not the turn", async () => {
  await soon(1_500, async () => {
    await using server = new TestServer();
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

test("dead waiters in line cost their successors nothing", async () => {
  await soon(500, async () => {
    await using server = new TestServer();
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

test("a stopped waiter at the head delays its successors by one claim window", async () => {
  await soon(3_000, async () => {
    await using server = new TestServer();
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
    assert.match((await stopped.line())!, /^held/, "it stands in line again and gets its turn");
    return tookMs;
  });
});

test("a process that opens the file clears what dead ones left in it", async () => {
  await using server = new TestServer();
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
    assert.ok(systemClock.now() < until, `${count} waiters never stood in line`);
    await new Promise((look) => setTimeout(look, 10));
  }
}

function startOf(pid: number): string {
  const stat = execFileSync("cat", [`/proc/${pid}/stat`], { encoding: "utf8" });
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]!;
}
