// The file loses its name or gets a second one while it is in use. A process that has it open goes
// on with a file that no other process will ever open, and must be told.
import assert from "node:assert/strict";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { connect } from "../../../../connect.js";
import type { Lease } from "../../../../core/holding/lease.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import { EngineError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import type { Child } from "../../../../test-support/child.fixture.js";
import { recorder } from "../../../../test-support/recorder.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 3_000;
const HANG_MS = 30_000;
// The engine checks the file at most every 5 ms.
const NEXT_CHECK_MS = 10;
const record = recorder(afterEach);

const LOSSES: readonly [what: string, lose: (server: SqliteTestServer) => void][] = [
  ["removed with its -wal and -shm", removeAll],
  ["removed alone", (server) => rmSync(server.path)],
  ["renamed", (server) => renameSync(server.path, `${server.path}.old`)],
  ["replaced by a restored copy", replaceByCopy],
  ["separated from its -shm", (server) => rmSync(`${server.path}-shm`)],
  ["separated from its -wal", (server) => rmSync(`${server.path}-wal`)],
];

for (const [what, lose] of LOSSES) {
  test(`a holder whose file is ${what} learns it at its next renewal, and its lease expires`, async () => {
    await using server = new SqliteTestServer();
    const locks = await connect(server.url);
    const lease = await locks.acquire("a", { ttlMs: TTL_MS, renewEveryMs: 100 });
    const failures = record(systemClock, "renewal-failed");
    lose(server);
    await runsOut(lease);
    const { error } = failures[0]!.message;
    assert.ok(failures[0]!.at < TTL_MS / 2, `told after ${failures[0]!.at} ms`);
    assert.ok(isFileReplaced(error), String(error));
    await refusesAll(locks, lease);
    await locks.close();
  });
}

test("a claim is refused as soon as the file is removed, and a new file has only new users", async () => {
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  const lease = await locks.acquire("a", { ttlMs: TTL_MS });
  removeAll(server);
  // Many new files, one after another: none of them gets the inode of the file that is still open
  // here.
  for (let i = 0; i < 20; i++) {
    const other = await connect(server.url);
    await other.acquire("b", { ttlMs: 60_000 });
    await pause(NEXT_CHECK_MS);
    await assert.rejects(locks.tryAcquire("b"), isFileReplaced);
    await assert.rejects(locks.acquire("c", { waitMs: 60_000 }), isFileReplaced);
    await other.close();
    removeAll(server);
  }
  await runsOut(lease);
});

test("a waiter without a time limit is told that its file is gone", async () => {
  // This takes one heartbeat.
  await soon(2_000, async () => {
    await using server = new SqliteTestServer();
    const holder = await connect(server.url);
    const waiter = await connect(server.url);
    await holder.acquire("a");
    const waiting = waiter.acquire("a", { waitMs: Infinity });
    while ((await holder.inspect("a")).waiters.length === 0) await pause(10);
    removeAll(server);
    const tookMs = await timed(() => assert.rejects(waiting, isFileReplaced));
    await waiter.close();
    await holder.close();
    return tookMs;
  });
});

test("a lease survives when its file gets its name back before the ttl is over", async () => {
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  await using lease = await locks.acquire("a", { ttlMs: 6_000 });
  renameSync(server.path, `${server.path}.old`);
  await pause(NEXT_CHECK_MS);
  await assert.rejects(locks.tryAcquire("b"), isFileReplaced);
  renameSync(`${server.path}.old`, server.path);
  assert.ok((await locks.tryAcquire("b")) !== null);
  await pause(7_000);
  assert.equal(lease.held, true);
});

test("a lease in a new file survives when users of the removed file close it", async () => {
  await using server = new SqliteTestServer();
  const before = await connect(server.url);
  await before.acquire("a", { ttlMs: TTL_MS });
  removeAll(server);
  await using after = await connect(server.url);
  const lease = await after.acquire("a", { ttlMs: 2 * TTL_MS });
  await before.close();
  await pause(3 * TTL_MS);
  assert.equal(lease.held, true);
  assert.equal(await server.child("rival", [server.url, "a"]).line(), "busy");
});

test("a file in use without its -wal or -shm is refused, and tokens rise after its users are gone", async () => {
  // SQLite's write lock is on -shm. With two of these files, two processes could write at once, and
  // the commits of one would be lost when the other closes the file.
  const refuses = async (suffix: string, end: (user: Child) => void) => {
    await using server = new SqliteTestServer();
    const user = server.child("holder", [server.url, "a", '{"ttlMs":60000}']);
    const last = BigInt((await user.line())!.split(" ")[1]!);
    rmSync(`${server.path}${suffix}`);
    await assert.rejects(connect(server.url), isFileReplaced);
    end(user);
    await user.exited;
    await using locks = await connect(server.url);
    const { token } = await locks.acquire("a", { waitMs: HANG_MS });
    assert.ok(token > last, `${token} after ${last}`);
  };
  const close = (user: Child) => user.process.stdin!.end("exit\n");
  const kill = (user: Child) => user.process.kill("SIGKILL");
  await Promise.all([refuses("-wal", close), refuses("-shm", close), refuses("-shm", kill)]);
});

test("a file that was removed alone is not created again beside its old -wal and -shm", async () => {
  await using server = new SqliteTestServer();
  const user = await connect(server.url);
  await user.acquire("a");
  rmSync(server.path);
  await assert.rejects(connect(server.url), (error: unknown) => {
    assert.ok(isFileReplaced(error), String(error));
    assert.match(String(error), /remove "\S+-wal" and "\S+-shm", then start them again/);
    return true;
  });
  assert.equal(existsSync(server.path), false);
  await user.close();
});

test("a file with a hard link is refused under both names, and works after one name is removed", async () => {
  await using server = new SqliteTestServer();
  await (await connect(server.url)).close();
  const second = join(server.folder, "second.db");
  linkSync(server.path, second);
  for (const path of [server.path, second]) {
    await assert.rejects(connect(`sqlite:${path}`), (error: unknown) => {
      assert.ok(error instanceof EngineError && !error.retryable, String(error));
      assert.match(error.message, /has 2 names \(hard links\).*find .* -samefile/s);
      return true;
    });
  }
  rmSync(second);
  await using locks = await connect(server.url);
  assert.ok((await locks.acquire("a")).held);
  linkSync(server.path, second);
  assert.ok(
    (await locks.acquire("b")).held,
    "a link that is made later does not disturb a process that has the file open",
  );
  await assert.rejects(connect(`sqlite:${second}`), /hard links/);
});

test("a file is the same through symbolic links, until a link points elsewhere", async () => {
  await using server = new SqliteTestServer();
  const link = join(server.folder, "link.db");
  const folder = join(server.folder, "folder");
  symlinkSync(server.path, link);
  symlinkSync(server.folder, folder);
  const direct = await connect(server.url);
  const linked = await connect(`sqlite:${link}`);
  const below = await connect(`sqlite:${join(folder, "locks.db")}`);
  for (const [name, locks] of Object.entries({ direct, linked, below })) {
    await using lease = await locks.acquire(name);
    for (const other of [direct, linked, below]) assert.ok((await other.tryAcquire(name)) === null);
    assert.ok(lease.held);
  }
  rmSync(link);
  symlinkSync(join(server.folder, "elsewhere.db"), link);
  await pause(NEXT_CHECK_MS);
  await assert.rejects(linked.tryAcquire("a"), isFileReplaced);
  mkdirSync(join(server.folder, "other"));
  rmSync(folder);
  symlinkSync(join(server.folder, "other"), folder);
  await pause(NEXT_CHECK_MS);
  await assert.rejects(below.tryAcquire("a"), isFileReplaced);
  assert.ok((await direct.tryAcquire("a")) !== null);
  for (const locks of [direct, linked, below]) await locks.close();
});

test("a claim is refused after the folder of its file is renamed", async () => {
  await using server = new SqliteTestServer();
  const folder = join(server.folder, "inner");
  mkdirSync(folder);
  const locks = await connect(`sqlite:${folder}/locks.db`);
  assert.ok((await locks.acquire("a")).held);
  renameSync(folder, `${folder}.old`);
  await pause(NEXT_CHECK_MS);
  await assert.rejects(locks.tryAcquire("b"), isFileReplaced);
  await locks.close();
});

function removeAll({ path }: SqliteTestServer): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
}

function replaceByCopy({ path }: SqliteTestServer): void {
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
}

function isFileReplaced(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  const { effect, retryable, message } = error;
  return effect === "none" && !retryable && /was removed or replaced/.test(message);
}

async function runsOut(lease: Lease): Promise<void> {
  const until = systemClock.now() + HANG_MS;
  while (lease.held) {
    assert.ok(systemClock.now() < until, "the lease is still held");
    await pause(10);
  }
}

async function refusesAll(locks: Locks, lease: Lease): Promise<void> {
  await assert.rejects(locks.tryAcquire("b"), isFileReplaced);
  await assert.rejects(locks.acquire("c", { waitMs: 60_000 }), isFileReplaced);
  await assert.rejects(locks.check(lease.sequencer), isFileReplaced);
  await assert.rejects(locks.inspect("a"), isFileReplaced);
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
