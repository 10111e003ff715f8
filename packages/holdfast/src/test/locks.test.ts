import assert from "node:assert/strict";
import { test } from "node:test";
import { setUp } from "../core/test/set-up.fixture.js";
import { EngineError, UsageError } from "../errors.js";
import type { ListOptions, Locks } from "../locks.js";

async function names(locks: Locks, options?: ListOptions): Promise<string[]> {
  const found: string[] = [];
  for await (const view of locks.list(options)) found.push(view.resource);
  return found;
}

test("tryAcquire returns a lease or null, and never waits", async () => {
  const { locks, other } = setUp();
  const lease = await locks.tryAcquire("a");
  assert.ok(lease?.held);
  assert.equal(await other.tryAcquire("a"), null);
  await lease.release();
  assert.ok(await other.tryAcquire("a"));
});

test("tryAcquire returns null when acquire with waitMs 0 times out, and throws when that fails", async () => {
  const { engine, locks, other } = setUp();
  await other.acquire("a");
  await assert.rejects(locks.acquire("a", { waitMs: 0 }), { code: "ACQUIRE_TIMEOUT" });
  assert.equal(await locks.tryAcquire("a"), null);
  engine.inject("tryAcquire", { kind: "fail" }, 2);
  await assert.rejects(locks.acquire("b", { waitMs: 0 }), EngineError);
  await assert.rejects(locks.tryAcquire("b"), EngineError);
});

test("two tryAcquire at once give one lease", async () => {
  const { locks } = setUp();
  const both = await Promise.all([locks.tryAcquire("a"), locks.tryAcquire("a")]);
  assert.equal(both.filter((lease) => lease !== null).length, 1);
});

test("tryAcquire does not overtake a waiter", async () => {
  const { clock, locks, other } = setUp();
  const holder = await other.acquire("a");
  const waiting = other.acquire("a", { ttlMs: 5_000 });
  await clock.advance(1);
  await holder.release();
  assert.equal(await locks.tryAcquire("a"), null);
  assert.ok((await waiting).held);
});

test("check is false for a grant that was released, revoked or of another mode", async () => {
  const { locks, other } = setUp();
  const lease = await locks.acquire("a");
  assert.equal(await other.check(lease.sequencer), true);
  assert.equal(await other.check(lease.sequencer.replace("exclusive", "shared")), false);
  assert.equal(await other.check(lease.sequencer.replace(":1:", ":2:")), false);
  await lease.release();
  assert.equal(await other.check(lease.sequencer), false);
  await assert.rejects(other.check("nonsense"), UsageError);
});

test("inspect shows who holds and who waits", async () => {
  const { clock, locks, other } = setUp();
  const lease = await locks.acquire("a", { label: "holder" });
  const waiting = other.acquire("a", { label: "waiter" });
  await clock.advance(10);
  const view = await locks.inspect("a");
  assert.deepEqual(
    view.holders.map(({ label, token }) => [label, token]),
    [["holder", lease.token]],
  );
  assert.deepEqual(
    view.waiters.map(({ label, position }) => [label, position]),
    [["waiter", 0]],
  );
  await lease.release();
  await waiting;
  assert.deepEqual((await locks.inspect("nothing")).holders, []);
});

test("list returns every page, by glob, and stops on abort", async () => {
  const { locks } = setUp();
  for (let i = 0; i < 600; i++) await locks.acquire(`r${String(i).padStart(3, "0")}`);
  assert.equal((await names(locks)).length, 600);
  assert.deepEqual(await names(locks, { match: "r00?" }), [
    ...Array.from({ length: 10 }, (_, i) => `r00${i}`),
  ]);
  const controller = new AbortController();
  const reason = new Error("enough");
  const found: string[] = [];
  const listing = (async () => {
    for await (const view of locks.list({ signal: controller.signal })) {
      if (found.push(view.resource) === 10) controller.abort(reason);
    }
  })();
  await assert.rejects(listing, reason);
  assert.ok(found.length < 600);
});

test("list refuses a match that is no glob", async () => {
  const { locks } = setUp();
  for (const match of ["", 5, 5n]) {
    await assert.rejects(names(locks, { match } as ListOptions), UsageError, String(match));
  }
});

test("revoke needs the grant's own token, and changes no other grant", async () => {
  const { locks, other } = setUp();
  const lease = await locks.acquire("a");
  await assert.rejects(other.revoke("a", {} as never), UsageError);
  await assert.rejects(other.revoke("a", { token: 1 } as never), UsageError);
  await assert.rejects(other.revoke("a", undefined as never), UsageError);
  for (const force of ["no", "false", 1, {}, null]) {
    const revoking = other.revoke("a", { token: 1n, force } as never);
    await assert.rejects(revoking, /force is (.* must be true or false|null; only undefined)/);
  }
  await assert.rejects(other.revoke("a", { token: 1n, forse: true } as never), /"forse"/);
  assert.equal(await other.revoke("a", { token: lease.token + 1n }), "gone");
  assert.ok(lease.held);
  assert.equal(await other.revoke("a", { token: lease.token }), "revoked");
});

test("a revoked holder's release lets the successor in; force does not wait for it", async () => {
  const { clock, locks, other } = setUp();
  const lease = await locks.acquire("a");
  await other.revoke("a", { token: lease.token });
  await clock.advance(0);
  assert.equal(await other.tryAcquire("a"), null, "the holder may still be at work");
  assert.equal(await lease.release(), "gone");
  await clock.advance(0);
  const next = await other.acquire("a");
  assert.equal(await locks.revoke("a", { token: next.token, force: true }), "revoked");
  assert.ok(await locks.tryAcquire("a"));
  await clock.advance(0);
  assert.equal(next.held, false);
});

test("every verb refuses an invalid name, before any call", async () => {
  const { engine, locks } = setUp();
  for (const name of ["", "a\0", 5 as never, undefined as never]) {
    await assert.rejects(locks.acquire(name), UsageError);
    await assert.rejects(locks.tryAcquire(name), UsageError);
    await assert.rejects(locks.inspect(name), UsageError);
    await assert.rejects(locks.revoke(name, { token: 1n }), UsageError);
    await assert.rejects(
      locks.run(name, () => 1),
      UsageError,
    );
  }
  for (const verb of ["enqueue", "tryAcquire", "inspect", "revoke"] as const) {
    assert.equal(engine.calls(verb), 0);
  }
});

test("shared leases live together up to their limit, and readers let a writer in", async () => {
  const { clock, locks, other } = setUp();
  const shared = { mode: "shared", limit: 2 } as const;
  const [one, two] = [await locks.acquire("a", shared), await other.acquire("a", shared)];
  assert.equal(await locks.tryAcquire("a", shared), null);
  await assert.rejects(locks.tryAcquire("a", { mode: "shared" }), UsageError);
  const writer = locks.acquire("a");
  await clock.advance(1);
  await one.release();
  assert.equal(await other.tryAcquire("a", shared), null, "the writer stands before");
  await two.release();
  assert.equal((await writer).mode, "exclusive");
});
