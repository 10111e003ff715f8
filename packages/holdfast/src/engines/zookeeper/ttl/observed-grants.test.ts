import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../testing/index.js";
import { emptyRecord, type LockRecord } from "./lock-record.js";
import { ObservedGrants } from "./observed-grants.js";

const TTL_MS = 5_000;
const MANY = 25_000;

test("an observer of more names than it remembers finds out that a holder is dead", async () => {
  const clock = new ManualClock();
  const observed = new ObservedGrants(clock);
  // The observer looks at each name once a second, as waiters do.
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < MANY; i++) observed.read(`/${i}`, held("1"), null);
    await clock.advance(1_000);
  }
  for (const path of ["/0", `/${MANY - 1}`]) {
    assert.deepEqual(observed.judge(path, held("1")).grants, [], `${path} was unchanged for 6 s`);
  }
  assert.equal(observed.judge("/0", held("2")).grants.length, 1, "another grant is alive");
});

test("a name that nobody looks at any more is forgotten", async () => {
  const clock = new ManualClock();
  const observed = new ObservedGrants(clock);
  for (let i = 0; i < MANY; i++) observed.read(`/${i}`, held("1"), null);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) observed.read(`/later/${i}`, held("1"), null);
  assert.ok(observed.size <= MANY + 10_000, `${observed.size} are remembered`);
  // A forgotten grant counts as alive: a mistake must never end a grant.
  assert.equal(observed.judge("/0", held("1")).grants[0]?.leftMs, TTL_MS);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) observed.read("/one", held("1"), null);
  assert.ok(observed.size <= 10_001, `${observed.size} are remembered`);
});

test("a grant of this process that was forgotten is alive, and nothing is sure of it", async () => {
  const clock = new ManualClock();
  const observed = new ObservedGrants(clock);
  observed.wrote("/ours", held("1"), clock.now());
  assert.equal(observed.judge("/ours", held("1")).grants[0]?.sureMs, TTL_MS);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) observed.read(`/${i}`, held("1"), null);
  const [judged] = observed.judge("/ours", held("1")).grants;
  assert.deepEqual([judged?.leftMs, judged?.sureMs], [TTL_MS, 0]);
});

function held(token: string): LockRecord {
  const terms = { mode: "exclusive", limit: null, tokens: 1, ttlMs: TTL_MS } as const;
  const state = { beat: 0, order: 0, index: 0, revoked: false, left: false };
  const grant = { ...terms, token, lockDelayMs: 0, label: "", ...state };
  return { ...emptyRecord(), grants: { hash: grant } };
}
