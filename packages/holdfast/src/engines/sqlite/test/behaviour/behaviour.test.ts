// What only SQLite has: a file that another process writes to, threads, and rows that stay in the
// file.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { connect } from "../../../../connect.js";
import type { Lease } from "../../../../core/holding/lease.js";
import { EngineError } from "../../../../errors.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { type Binding, loadBinding } from "../../file/client.js";
import { openDatabase } from "../../file/database.js";
import { sqliteEngine } from "../../index.js";
import { resolveSqlite } from "../../options.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

const TABLES = ["grants", "waiters", "peers", "tombstones", "sightings"];

test("calls fail in time and without blocking the process while another process keeps the write lock", async () => {
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  const lease = await locks.acquire("held");
  // Like a process that was stopped in the middle of its transaction.
  const writer = await openDatabase(resolveSqlite({ path: server.path }), "quick");
  writer.exec("BEGIN IMMEDIATE");
  let ticks = 0;
  const ticking = setInterval(() => ticks++, 5);
  await assert.rejects(locks.acquire("a", { callTimeoutMs: 1_000 }), (error: unknown) => {
    assert.ok(error instanceof EngineError, String(error));
    assert.equal(error.retryable, true);
    return true;
  });
  clearInterval(ticking);
  assert.ok(ticks > 15, `the event loop ran ${ticks} times in 1,000 ms`);
  assert.equal(lease.held, true, "a lease that was held before stays held");
  writer.exec("ROLLBACK");
  writer.close();
  assert.equal(await locks.run("a", () => "granted"), "granted");
});

test("a worker thread and the main thread exclude each other, and a release in one wakes the other", async () => {
  // Faster than a heartbeat, which the head of the queue sends every 250 ms.
  await soon(200, async () => {
    await using server = new SqliteTestServer();
    await using locks = await connect(server.url);
    const lease = await locks.acquire("a");
    const file = fileURLToPath(new URL("../support/holder.child.js", import.meta.url));
    const worker = new Worker(file, { argv: [server.url, "a", "{}"], stdin: true, stdout: true });
    const held = new Promise((read) => worker.stdout.once("data", (text) => read(`${text}`)));
    while ((await locks.inspect("a")).waiters.length === 0) await pause(10);
    const tookMs = await timed(async () => {
      await lease.release();
      assert.match(String(await held), /^held/);
    });
    worker.stdin!.end("exit\n");
    await new Promise((ended) => worker.once("exit", ended));
    return tookMs;
  });
});

test("1,000 aborted waits leave no row in the file and no memory in use", async () => {
  await using server = new SqliteTestServer();
  const locks = await connect(server.url);
  const other = await connect(server.url);
  const lease = await locks.acquire("a");
  const abortWaits = async (count: number) => {
    for (let i = 0; i < count; i += 50) {
      const controller = new AbortController();
      const waits = Array.from({ length: 50 }, (_, n) =>
        other
          .acquire("a", { signal: controller.signal, fair: n % 2 === 0 ? "strict" : "cohort" })
          .then(
            () => assert.fail("an aborted wait was granted"),
            (error) => assert.equal(error, controller.signal.reason),
          ),
      );
      await pause(2);
      controller.abort(new Error("enough"));
      await Promise.all(waits);
    }
  };
  await abortWaits(1_000);
  const grown = await growth(() => abortWaits(1_000));
  assert.ok(grown < 2_000_000, `the heap grew by ${grown} bytes`);
  while ((await locks.inspect("a")).waiters.length > 0) await pause(10);
  await lease.release();
  await other.close();
  await locks.close();
  for (const table of TABLES)
    assert.deepEqual(await server.sql(`SELECT * FROM ${table}`), [], table);
});

test("both bindings work on one file, if Node has its own SQLite", async (t) => {
  await using server = new SqliteTestServer();
  const own: Binding[] = process.getBuiltinModule("node:sqlite") ? ["node:sqlite"] : [];
  if (own.length === 0) t.diagnostic("this Node has no SQLite of its own; newer ones run both");
  for (const binding of [...own, "libsql" as const]) {
    await loadBinding(binding);
    await using locks = await connect(sqliteEngine({ path: server.path, binding }));
    assert.ok((await locks.acquire("a")).held);
  }
});

test("one process renews 5,000 leases in batches and loses none", async () => {
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  const leases: Lease[] = [];
  for (let i = 0; i < 5_000; i++) leases.push(await locks.acquire(`r${i}`, { ttlMs: 8_000 }));
  await pause(9_000);
  assert.equal(leases.filter((lease) => !lease.held).length, 0);
});

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** Heap bytes that remain after work. Needs --expose-gc, which V8 can switch on at run time. */
async function growth(work: () => Promise<void>): Promise<number> {
  const { setFlagsFromString } = await import("node:v8");
  const { runInNewContext } = await import("node:vm");
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const settle = async () => {
    for (let i = 0; i < 3; i++) {
      gc();
      await pause(10);
    }
    return process.memoryUsage().heapUsed;
  };
  const before = await settle();
  await work();
  return (await settle()) - before;
}
