// Grants that their holder has left: time ends them, and what their former process does has no
// effect.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { sqliteEngine } from "../../index.js";
import { canRun, SqliteTestServer } from "../support/test-server.fixture.js";

const LEFT_MS = 10_000;

for (const [how, end] of [
  ["killed", (child) => child.process.kill("SIGKILL")],
  ["ended without close", (child) => child.process.stdin!.end()],
] as const satisfies [string, (child: ReturnType<SqliteTestServer["child"]>) => void][]) {
  test(`a run of once keeps others out for atLeastMs when its process is ${how}`, async () => {
    await using server = new SqliteTestServer();
    const first = server.child("once", [server.url, "nightly", "4000"]);
    const startedAt = performance.now();
    assert.equal(await first.line(), "ran");
    end(first);
    await first.exited;
    await using locks = await connect(server.url);
    const again = () => locks.once("nightly", { atMostMs: 1_000 }, () => "again");
    assert.equal((await again()).ran, false);
    while (!(await again()).ran) await new Promise((look) => setTimeout(look, 20));
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= 3_500 && tookMs < 60_000, `others were kept out for ${tookMs} ms`);
  });
}

test("only time or force ends a grant that its holder left, and nothing extends it", async () => {
  await using server = new SqliteTestServer();
  const engine = sqliteEngine({ path: server.path });
  const { claim, token } = await left(engine, "a");
  assert.deepEqual(await engine.renew([{ ...claim, ttlMs: 60_000 }], now()), [
    { kind: "gone", why: "expired" },
  ]);
  assert.equal((await engine.tryAcquire(claim, now())).kind, "gone");
  assert.equal((await engine.queue!.enqueue(claim, now())).kind, "gone");
  const [beat] = await engine.queue!.heartbeat([claim], now());
  assert.equal(beat!.kind, "unknown");
  assert.equal((await engine.queue!.withdraw(claim, now())).kind, "withdrawn");
  const [released] = await engine.release([{ ...claim, tombstoneMs: 0 }], now());
  assert.equal(released!.kind, "gone");
  assert.equal(await engine.revoke({ resource: "a", token, force: false }, now()), "revoked");
  const [holder] = (await engine.inspect("a", now())).holders;
  assert.ok(holder!.remainingMs > LEFT_MS - 5_000 && holder!.remainingMs <= LEFT_MS);
  assert.equal(await engine.revoke({ resource: "a", token, force: true }, now()), "revoked");
  assert.deepEqual((await engine.inspect("a", now())).holders, []);
  await engine.close();
});

test("a forced revocation of a grant that its holder left lets in the next waiter", async () => {
  await using server = new SqliteTestServer();
  const engine = sqliteEngine({ path: server.path });
  const { token } = await left(engine, "a");
  await using locks = await connect(server.url);
  const waiting = locks.acquire("a", { waitMs: 30_000 });
  while ((await locks.inspect("a")).waiters.length === 0) await locks.inspect("a");
  await engine.revoke({ resource: "a", token, force: true }, now());
  assert.ok((await waiting).held);
  await engine.close();
});

test("a late copy of a renewal does not extend a grant that its holder left", async () => {
  await using server = new SqliteTestServer();
  const engine = sqliteEngine({ path: server.path });
  const early = now();
  const { claim } = await left(engine, "a");
  for (const leave of [false, true]) {
    await engine.renew([{ ...claim, ttlMs: 60_000, leave }], early);
    const [holder] = (await engine.inspect("a", now())).holders;
    assert.ok(holder!.remainingMs <= LEFT_MS, `late, leave: ${leave}`);
  }
  await engine.close();
});

test("a grant that its holder left keeps out a process in another time namespace", async (t) => {
  const ahead = ["unshare", "--time", "--monotonic", "5000", "--fork", "--kill-child"];
  if (!canRun(t, ahead)) return;
  await using server = new SqliteTestServer();
  const first = server.child("once", [server.url, "nightly", "1500"]);
  assert.equal(await first.line(), "ran");
  first.process.kill("SIGKILL");
  await first.exited;
  const once = () => server.child("once", [server.url, "nightly", "0"], ahead);
  const seen = once();
  assert.equal(await seen.line(), "kept out");
});

async function left(engine: Engine, resource: string): Promise<{ claim: Claim; token: bigint }> {
  const claim: Claim = {
    resource,
    grantId: "0123456789abcdef0123456789abcdef",
    mode: "exclusive",
    limit: null,
    ttlMs: 60_000,
    lockDelayMs: 0,
    tokens: 1,
    label: "left",
  };
  const granted = await engine.tryAcquire(claim, now());
  assert.ok(granted.kind === "granted");
  const renewal = { resource, grantId: claim.grantId, ttlMs: LEFT_MS, leave: true };
  const [answer] = await engine.renew([renewal], now());
  assert.equal(answer!.kind, "renewed");
  return { claim, token: granted.token };
}
