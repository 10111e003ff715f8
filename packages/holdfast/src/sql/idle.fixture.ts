// What nobody uses any more goes away by itself, on whichever database.
import assert from "node:assert/strict";
import type { Call, Claim, Engine } from "../engine.js";
import { mintGrantId } from "../grant-id.js";

const KEPT_MS = 60_000;
const TTL_MS = 30_000;
const COUNT = 10;
// One operation in a hundred looks for what is idle. That none of so many does will not happen.
const MOST_OPERATIONS = 5_000;

export interface Rows {
  readonly resources: number;
  readonly grants: number;
  readonly waiters: number;
  readonly tombstones: number;
}

export interface IdleGround {
  engine(): Engine;
  /** Makes so much older what there is of resources named idle…, but the grant of idle-held; and all tombstones. */
  age(ms: number): Promise<unknown>;
  /** Those of resources named idle…, and all tombstones. */
  rows(): Promise<Rows>;
}

/** Nothing but the usual operations on another resource clears up. */
export async function expectNothingIdle(ground: IdleGround): Promise<void> {
  const engine = ground.engine();
  const held = claim("idle-held", 600_000);
  const holds = await engine.tryAcquire(held, now());
  await engine.queue!.enqueue(claim("idle-held", TTL_MS), now());
  for (let i = 0; i < COUNT; i++) {
    const released = claim(`idle-released-${i}`, TTL_MS);
    await engine.tryAcquire(released, now());
    await engine.release([{ ...released, tombstoneMs: i % 2 === 0 ? 0 : TTL_MS }], now());
    await engine.tryAcquire(claim(`idle-expired-${i}`, TTL_MS), now());
  }
  await engine.queue!.enqueue(claim("idle-expired-0", TTL_MS), now());
  const before = await ground.rows();
  assert.ok(before.resources > COUNT, `${before.resources} resources`);
  const { resources } = before;
  assert.deepEqual(before, { resources, grants: COUNT + 1, waiters: 2, tombstones: COUNT / 2 });
  await ground.age(KEPT_MS + TTL_MS + 1_000);
  const left = { resources: 1, grants: 1, waiters: 0, tombstones: 0 };
  for (let operations = 0; ; operations += 2) {
    const usual = claim("usual", TTL_MS);
    await engine.tryAcquire(usual, now());
    await engine.release([{ ...usual, tombstoneMs: 0 }], now());
    const rows = await ground.rows();
    if (JSON.stringify(rows) === JSON.stringify(left)) break;
    assert.ok(operations < MOST_OPERATIONS, `still there: ${JSON.stringify(rows)}`);
  }
  assert.ok(holds.kind === "granted");
  const sequence = { resource: held.resource, mode: held.mode, token: holds.token };
  assert.equal(await engine.check(sequence, now()), true, "what is held is not idle");
}

function claim(resource: string, ttlMs: number): Claim {
  const kind = { mode: "exclusive", limit: null, lockDelayMs: 0, tokens: 1 } as const;
  return { resource, grantId: mintGrantId(), ttlMs, label: "test", ...kind };
}

function now(): Call {
  return { startedAt: performance.now(), timeoutMs: 10_000 };
}
