import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, describe, it, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../../connect.js";
import type { Engine } from "../../../../engine.js";
import { LeaseLostError, UnsupportedError, UsageError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { redisEngine } from "../../../redis/index.js";
import { quorumEngine } from "../../index.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const MAX_TTL_MS = 60_000;

describe("five nodes", () => {
  let quorum: TestQuorum;
  let locks: Locks;
  before(async () => {
    quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
    locks = await quorum.locks();
  });
  after(() => quorum[Symbol.asyncDispose]());

  it("a grant is a record on the nodes, and a release leaves none", async () => {
    const lease = await locks.acquire("plain");
    const records = () => Promise.all(quorum.admins.map((admin) => admin.hlen("holdfast:plain")));
    await until("each node has a record", async () =>
      (await records()).every((count) => count === 1),
    );
    assert.equal(await lease.release(), "released");
    await until("no node has one", async () => (await records()).every((count) => count === 0));
  });

  it("a claim does not wait for two of five nodes that hang", async () => {
    const paused = quorum.servers.slice(0, 2);
    for (const server of paused) server.pause();
    try {
      const lease = await locks.acquire("hung", { ttlMs: 5_000 });
      await lease.renew();
      assert.equal(await locks.check(lease.sequencer), true);
      assert.equal(await lease.release(), "released");
    } finally {
      for (const server of paused) server.resume();
    }
    // The requests to the paused nodes are over by now, and must leave no record for a whole ttl.
    await until("nothing is left on any node", async () => {
      const counts = await Promise.all(quorum.admins.map((one) => one.hlen("holdfast:hung")));
      return counts.every((count) => count === 0);
    });
  });

  it("the number of nodes that may forget is a trait", async () => {
    const traits = quorumEngine(quorum.options(quorum.admins)).traits;
    assert.equal("mayForget" in traits && traits.mayForget, 0);
    const all = quorumEngine(quorum.options(quorum.admins, { writeQuorum: 5 })).traits;
    assert.equal("mayForget" in all && all.mayForget, 4);
  });

  it("a ttl and a lock-delay that outlast a quarantine are refused", async () => {
    const terms = { ttlMs: 40_000, lockDelayMs: 30_000 };
    await assert.rejects(locks.acquire("long", terms), UsageError);
  });

  it("a renewal for a ttl that outlasts a quarantine with the lock-delay is refused", async () => {
    const terms = { ttlMs: 10_000, lockDelayMs: 30_000 };
    const lease = await locks.acquire("longer", terms);
    const tooLong = lease.renew({ ttlMs: 40_000 });
    await assert.rejects(tooLong, (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, /40000.*30000.*60000/s);
      return true;
    });
    const lefts = await Promise.all(quorum.admins.map((one) => one.pttl("holdfast:longer")));
    assert.ok(Math.max(...lefts) < 42_000, `the records were kept for ${lefts} ms more`);
    await lease.renew({ ttlMs: 30_000 });
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });

  it("a fractional lock-delay is rounded up to a whole millisecond", async () => {
    const lease = await locks.acquire("part", { ttlMs: 5_000, lockDelayMs: 0.5 });
    await lease.renew();
    assert.equal(await lease.release(), "released");
  });

  it("a grant that was left behind cannot be released", async () => {
    const engine = await quorum.engine();
    const { resource, grantId } = claim("left");
    const claimed = { ...claim(resource), grantId };
    assert.equal((await engine.tryAcquire(claimed, now())).kind, "granted");
    const leaving = { resource, grantId, ttlMs: 20_000, leave: true };
    const [left] = await engine.renew([leaving], now());
    assert.equal(left!.kind, "renewed");
    const [released] = await engine.release([{ resource, grantId, tombstoneMs: 0 }], now());
    assert.equal(released!.kind, "gone");
    assert.equal((await locks.tryAcquire("left"))?.token, undefined);
  });

  it("connect takes the members from a URL, and refuses fewer than three", async () => {
    const remote = await connect(quorum.url);
    const lease = await remote.acquire("by url");
    assert.equal(await locks.tryAcquire("by url"), null);
    await lease.release();
    await remote.close();
    await assert.rejects(connect("redlock://127.0.0.1:1,127.0.0.1:2"), UsageError);
    await assert.rejects(connect(`${quorum.url}&quorum=3`), UsageError);
  });

  it("connect works while a node is down, and the node joins when it is back", async () => {
    await quorum.servers[4]!.restart();
    quorum.servers[4]!.pause();
    const remote = await connect(quorum.url);
    await (await remote.acquire("one down")).release();
    quorum.servers[4]!.resume();
    await remote.close();
  });
});

test("the ACL rights that the docs page lists are enough", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: MAX_TTL_MS });
  const page = await readFile(
    new URL("../../../../../../../docs/engines/quorum.md", import.meta.url),
    "utf8",
  );
  const rule = /^ACL (SETUSER app[\s\S]*?)^```/m.exec(page)![1]!.replaceAll("\\\n", " ");
  for (const admin of quorum.admins) await admin.call("ACL", rule.trim().split(/\s+/));
  const locks = await connect(quorum.url.replace("redlock://", "redlock://app:secret@"));
  const lease = await locks.acquire("rights");
  await lease.renew();
  assert.equal(await locks.check(lease.sequencer), true);
  assert.equal(await locks.tryAcquire("rights"), null);
  assert.equal((await locks.inspect("rights")).holders.length, 1);
  for await (const view of locks.list()) assert.equal(view.resource, "rights");
  assert.equal(await locks.revoke("rights", { token: lease.token }), "revoked");
  await lease.release();
  const reader = await locks.acquire("rights", { mode: "shared" });
  assert.equal(await reader.release(), "released");
  await locks.close();
});

test("a quorum refuses limits, because three clients could hold a semaphore of two", async () => {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
  const locks = await quorum.locks();
  const params = { mode: "shared", limit: 2 } as const;
  await assert.rejects(locks.acquire("gpu", params), UnsupportedError);
  // If limits were allowed: each node lets two in, and yet three clients have a majority each.
  const nodes: Engine[] = quorum.admins.map((client) => redisEngine({ client }));
  const majorities = [
    [0, 1, 2],
    [2, 3, 4],
    [0, 1, 3],
  ];
  for (const majority of majorities) {
    const one = claim("gpu", params);
    for (const i of majority) {
      assert.equal((await nodes[i]!.tryAcquire(one, now())).kind, "granted");
    }
  }
  for (const node of nodes) await node.close();
});

test("a writeQuorum of all nodes puts a lock on each node, like multiLock", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: MAX_TTL_MS, writeQuorum: 3 });
  const locks = await quorum.locks();
  const lease = await locks.acquire("all", { ttlMs: 2_000 });
  const counts = await Promise.all(quorum.admins.map((admin) => admin.hlen("holdfast:all")));
  assert.deepEqual(counts, [1, 1, 1]);
  await lease.release();
  quorum.servers[1]!.pause();
  await assert.rejects(locks.acquire("all", { ttlMs: 2_000, waitMs: 300 }), { code: "ENGINE" });
  quorum.servers[1]!.resume();
  await (await locks.acquire("all", { retry: Array(100).fill(50) })).release();
});

test("a lease that too few nodes can renew is lost before it expires", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: MAX_TTL_MS });
  const locks = await quorum.locks();
  const lease = await locks.acquire("fading", { ttlMs: 1_500, callTimeoutMs: 400 });
  const lost = new Promise<void>((go) => lease.signal.addEventListener("abort", () => go()));
  for (const server of quorum.servers.slice(1)) server.pause();
  await lost;
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  assert.equal(lease.held, false);
  for (const server of quorum.servers.slice(1)) server.resume();
});

test("a node that leaves quarantine takes over the grants that are held", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: 5_000 });
  const locks = await quorum.locks();
  const lease = await locks.acquire("kept", { ttlMs: 4_000 });
  const [first] = quorum.admins;
  await first!.flushall();
  await until(
    "it is certified",
    async () => (await first!.exists("{holdfast:}:certificate")) === 1,
  );
  await until("it has the grant", async () => (await first!.hlen("holdfast:kept")) === 1);
  // From now on the node counts: another node may hang, and the lease stays.
  quorum.servers[1]!.pause();
  await sleep(4_500);
  assert.equal(lease.held, true);
  quorum.servers[1]!.resume();
  assert.equal(await lease.release(), "released");
});
