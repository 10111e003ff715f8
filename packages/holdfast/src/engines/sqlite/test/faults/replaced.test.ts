// The file loses its name, or gets a second one, while it is in use: whoever has it open goes on
// with a file that nobody else will ever open, and must be told.
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
import { Ground } from "../support/test-server.fixture.js";

const TTL_MS = 3_000;
const HANG_MS = 30_000;
// A look at the file is good for 5 ms, whatever happens to it meanwhile.
const NEXT_LOOK_MS = 10;
const record = recorder(afterEach);

const LOSSES: readonly [what: string, lose: (ground: Ground) => void][] = [
  ["removed with all that lies beside it", removeAll],
  ["removed alone", (ground) => rmSync(ground.path)],
  ["renamed", (ground) => renameSync(ground.path, `${ground.path}.old`)],
  ["replaced by a restored copy", replaceByCopy],
  ["parted from its -shm", (ground) => rmSync(`${ground.path}-shm`)],
  ["parted from its -wal", (ground) => rmSync(`${ground.path}-wal`)],
];

for (const [what, lose] of LOSSES) {
  test(`a holder whose file is ${what} is told at its next renewal, and its lease runs out`, async () => {
    await using ground = new Ground();
    const locks = await connect(ground.url);
    const lease = await locks.acquire("a", { ttlMs: TTL_MS, renewEveryMs: 100 });
    const failures = record(systemClock, "renewal-failed");
    lose(ground);
    await runsOut(lease);
    const { error } = failures[0]!.message;
    assert.ok(failures[0]!.at < TTL_MS / 2, `told after ${failures[0]!.at} ms`);
    assert.ok(isCutOff(error), String(error));
    await refusesAll(locks, lease);
    await locks.close();
  });
}

test("a claim is refused as soon as the file is removed, and whoever opens it anew has it alone", async () => {
  await using ground = new Ground();
  await using locks = await connect(ground.url);
  const lease = await locks.acquire("a", { ttlMs: TTL_MS });
  removeAll(ground);
  // Many new files in turn: none of them gets the inode of the one that is still open here.
  for (let i = 0; i < 20; i++) {
    const other = await connect(ground.url);
    await other.acquire("b", { ttlMs: 60_000 });
    await pause(NEXT_LOOK_MS);
    await assert.rejects(locks.tryAcquire("b"), isCutOff);
    await assert.rejects(locks.acquire("c", { waitMs: 60_000 }), isCutOff);
    await other.close();
    removeAll(ground);
  }
  await runsOut(lease);
});

test("a waiter is told that its file is gone, however long it would wait", async () => {
  // One heartbeat, not for ever.
  await soon(2_000, async () => {
    await using ground = new Ground();
    const holder = await connect(ground.url);
    const waiter = await connect(ground.url);
    await holder.acquire("a");
    const waiting = waiter.acquire("a", { waitMs: Infinity });
    while ((await holder.inspect("a")).waiters.length === 0) await pause(10);
    removeAll(ground);
    const tookMs = await timed(() => assert.rejects(waiting, isCutOff));
    await waiter.close();
    await holder.close();
    return tookMs;
  });
});

test("a lease survives a file that is back under its name in time", async () => {
  await using ground = new Ground();
  await using locks = await connect(ground.url);
  await using lease = await locks.acquire("a", { ttlMs: 6_000 });
  renameSync(ground.path, `${ground.path}.old`);
  await pause(NEXT_LOOK_MS);
  await assert.rejects(locks.tryAcquire("b"), isCutOff);
  renameSync(`${ground.path}.old`, ground.path);
  assert.ok((await locks.tryAcquire("b")) !== null);
  await pause(7_000);
  assert.equal(lease.held, true);
});

test("whoever opens a file anew keeps it when those who had the old one open close it", async () => {
  await using ground = new Ground();
  const before = await connect(ground.url);
  await before.acquire("a", { ttlMs: TTL_MS });
  removeAll(ground);
  await using after = await connect(ground.url);
  const lease = await after.acquire("a", { ttlMs: 2 * TTL_MS });
  await before.close();
  await pause(3 * TTL_MS);
  assert.equal(lease.held, true);
  assert.equal(await ground.child("rival", [ground.url, "a"]).line(), "busy");
});

test("a file in use without its -wal or -shm is refused, and tokens rise once nobody uses it", async () => {
  // The write lock of SQLite is on -shm: with two of them, two processes would write at once, and
  // the commits of one of them would be gone when the other closes the file.
  const refuses = async (suffix: string, end: (user: Child) => void) => {
    await using ground = new Ground();
    const user = ground.child("holder", [ground.url, "a", '{"ttlMs":60000}']);
    const last = BigInt((await user.line())!.split(" ")[1]!);
    rmSync(`${ground.path}${suffix}`);
    await assert.rejects(connect(ground.url), isCutOff);
    end(user);
    await user.exited;
    await using locks = await connect(ground.url);
    const { token } = await locks.acquire("a", { waitMs: HANG_MS });
    assert.ok(token > last, `${token} after ${last}`);
  };
  const close = (user: Child) => user.process.stdin!.end("exit\n");
  const kill = (user: Child) => user.process.kill("SIGKILL");
  await Promise.all([refuses("-wal", close), refuses("-shm", close), refuses("-shm", kill)]);
});

test("a file that was removed alone is not made anew beside what is left of it", async () => {
  await using ground = new Ground();
  const user = await connect(ground.url);
  await user.acquire("a");
  rmSync(ground.path);
  await assert.rejects(connect(ground.url), (error: unknown) => {
    assert.ok(isCutOff(error), String(error));
    assert.match(String(error), /remove "\S+-wal" and "\S+-shm", then start them again/);
    return true;
  });
  assert.equal(existsSync(ground.path), false);
  await user.close();
});

test("a file with a hard link is refused under both names, and works when one is gone", async () => {
  await using ground = new Ground();
  await (await connect(ground.url)).close();
  const second = join(ground.folder, "second.db");
  linkSync(ground.path, second);
  for (const path of [ground.path, second]) {
    await assert.rejects(connect(`sqlite:${path}`), (error: unknown) => {
      assert.ok(error instanceof EngineError && !error.retryable, String(error));
      assert.match(error.message, /has 2 names \(hard links\).*find .* -samefile/s);
      return true;
    });
  }
  rmSync(second);
  await using locks = await connect(ground.url);
  assert.ok((await locks.acquire("a")).held);
  linkSync(ground.path, second);
  assert.ok((await locks.acquire("b")).held, "a link that is made later harms nobody who is there");
  await assert.rejects(connect(`sqlite:${second}`), /hard links/);
});

test("a file is the same one through symbolic links, until one of them points elsewhere", async () => {
  await using ground = new Ground();
  const link = join(ground.folder, "link.db");
  const folder = join(ground.folder, "folder");
  symlinkSync(ground.path, link);
  symlinkSync(ground.folder, folder);
  const direct = await connect(ground.url);
  const linked = await connect(`sqlite:${link}`);
  const below = await connect(`sqlite:${join(folder, "locks.db")}`);
  for (const [name, locks] of Object.entries({ direct, linked, below })) {
    await using lease = await locks.acquire(name);
    for (const other of [direct, linked, below]) assert.ok((await other.tryAcquire(name)) === null);
    assert.ok(lease.held);
  }
  rmSync(link);
  symlinkSync(join(ground.folder, "elsewhere.db"), link);
  await pause(NEXT_LOOK_MS);
  await assert.rejects(linked.tryAcquire("a"), isCutOff);
  mkdirSync(join(ground.folder, "other"));
  rmSync(folder);
  symlinkSync(join(ground.folder, "other"), folder);
  await pause(NEXT_LOOK_MS);
  await assert.rejects(below.tryAcquire("a"), isCutOff);
  assert.ok((await direct.tryAcquire("a")) !== null);
  for (const locks of [direct, linked, below]) await locks.close();
});

test("a file in a folder that is renamed is gone too", async () => {
  await using ground = new Ground();
  const folder = join(ground.folder, "inner");
  mkdirSync(folder);
  const locks = await connect(`sqlite:${folder}/locks.db`);
  assert.ok((await locks.acquire("a")).held);
  renameSync(folder, `${folder}.old`);
  await pause(NEXT_LOOK_MS);
  await assert.rejects(locks.tryAcquire("b"), isCutOff);
  await locks.close();
});

function removeAll({ path }: Ground): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
}

function replaceByCopy({ path }: Ground): void {
  copyFileSync(path, `${path}.copy`);
  renameSync(`${path}.copy`, path);
}

function isCutOff(error: unknown): boolean {
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
  await assert.rejects(locks.tryAcquire("b"), isCutOff);
  await assert.rejects(locks.acquire("c", { waitMs: 60_000 }), isCutOff);
  await assert.rejects(locks.check(lease.sequencer), isCutOff);
  await assert.rejects(locks.inspect("a"), isCutOff);
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
