// One of five nodes has a wall clock that a test can set. Its monotonic clock is not changed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ShiftedClock, startRedis } from "@holdfast/servers";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import { FencedOutError } from "../../../../errors.js";
import { channels, type Events } from "../../../../events.js";
import { now } from "../../../../test-support/call.fixture.js";
import { Register } from "../../../../test-support/fenced-register.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const TERMS = { maxTtlMs: 60_000, maxSkewMs: 20_000 };
const MODE = { mode: "exclusive", limit: null } as const;
const TRIED = { ...MODE, ttlMs: 10_000, lockDelayMs: 0, tokens: 1, label: "test" };
const clock = new ShiftedClock();
let quorum: TestQuorum;

before(async () => {
  quorum = await TestQuorum.start(5, TERMS, (node) => (node === 0 ? { env: clock.env } : {}));
});

after(async () => {
  await quorum[Symbol.asyncDispose]();
  clock[Symbol.dispose]();
});

test("a clock jump of +60 s on one node is reported, and nobody else gets the lock", async () => {
  clock.set(0);
  await quorum.reset();
  const [holder, other] = [await quorum.locks(), await quorum.locks()];
  const lease = await holder.acquire("a", { ttlMs: 30_000 });
  const suspects: Events["node"][] = [];
  const hear = (message: unknown) => void suspects.push(message as Events["node"]);
  channels.node.subscribe(hear);
  clock.set(60_000);
  assert.equal(await other.tryAcquire("a"), null);
  await lease.renew();
  channels.node.unsubscribe(hear);
  const suspect = suspects.find(({ state }) => state === "suspect");
  assert.ok(suspect, "the jump was not reported");
  assert.equal(suspect.node, quorum.names[0]);
  assert.ok(suspect.movedMs! > 50_000 && suspect.forMs >= TERMS.maxTtlMs);
  assert.equal(lease.held, true);
  // The jump delays neither this client, which saw it, nor a new client, which did not.
  assert.equal(await lease.release(), "released");
  const next = await (await quorum.locks()).acquire("a");
  assert.ok(next.token > lease.token);
  await next.release();
});

test("after a clock jump within maxSkewMs two clients hold, and the fenced register refuses one", async () => {
  clock.set(0);
  await quorum.reset();
  await using store = await startRedis();
  using register = new Register(store.port);
  const holder = await quorum.locks();
  const lease = await holder.acquire("number", { ttlMs: 15_000, renew: false });
  // As if the last two nodes had been unreachable when the lease was granted.
  for (const admin of quorum.admins.slice(3)) {
    await admin.del("holdfast:number", "{holdfast:number}:fence");
  }
  const value = await register.read("number", lease.token);
  clock.set(16_000);
  const stranger = await quorum.locks();
  const second = await stranger.acquire("number", { ttlMs: 10_000, waitMs: 10_000 });
  assert.equal(lease.held, true, "exclusion is worth nothing here");
  assert.ok(second.token > lease.token, "and the token everything");
  const fresh = await register.read("number", second.token);
  await register.write("number", second.token, fresh + 1);
  await assert.rejects(register.write("number", lease.token, value + 1), FencedOutError);
  clock.set(0);
});

test("a client that saw the clock before the jump does not count the node", async () => {
  clock.set(0);
  await quorum.reset();
  const [holder, witness] = [await quorum.locks(), await quorum.locks()];
  const lease = await holder.acquire("seen", { ttlMs: 15_000, renew: false });
  for (const admin of quorum.admins.slice(3)) {
    await admin.del("holdfast:seen", "{holdfast:seen}:fence");
  }
  clock.set(16_000);
  const outcome = await witness.tryAcquire("seen", { ttlMs: 10_000 }).catch(() => null);
  assert.equal(outcome, null);
  assert.equal(lease.held, true);
  clock.set(0);
});

test("a client that saw the clock before the jump does not count the node for a repeated claim", async () => {
  clock.set(0);
  await quorum.reset();
  const [holder, witness] = [await quorum.locks(), await quorum.engine()];
  const lease = await holder.acquire("again", { ttlMs: 15_000, renew: false });
  for (const admin of quorum.admins.slice(3)) {
    await admin.del("holdfast:again", "{holdfast:again}:fence");
  }
  clock.set(16_000);
  // A client that came after the jump gets the grant from three nodes.
  const claim = { ...TRIED, resource: "again", grantId: mintGrantId() };
  const stranger = await quorum.engine();
  // Redis caches its clock, and may not have seen the jump yet.
  const granted = async () => (await stranger.tryAcquire(claim, now())).kind === "granted";
  for (let tries = 0; !(await granted()); tries++) {
    assert.ok(tries < 400, "nobody was granted it after the jump");
    await sleep(20);
  }
  const outcome = await witness.tryAcquire(claim, now()).catch(() => null);
  assert.notEqual(outcome?.kind, "granted");
  assert.equal(lease.held, true);
  clock.set(0);
});
