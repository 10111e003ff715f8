import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../testing/index.js";
import { emptyLedger, type Ledger } from "./record.js";
import { Sightings } from "./sightings.js";

const TTL_MS = 5_000;
const MANY = 25_000;

test("a dead holder is found out by who looks at more names than are remembered", async () => {
  const clock = new ManualClock();
  const sightings = new Sightings(clock);
  // Each is looked at once a second, as waiters do.
  for (let round = 0; round < 6; round++) {
    for (let i = 0; i < MANY; i++) sightings.read(`/${i}`, held("1"), null);
    await clock.advance(1_000);
  }
  for (const path of ["/0", `/${MANY - 1}`]) {
    assert.deepEqual(sightings.judge(path, held("1")).grants, [], `${path} stood still for 6 s`);
  }
  assert.equal(sightings.judge("/0", held("2")).grants.length, 1, "another grant is alive");
});

test("names that nobody looks at any more are forgotten", async () => {
  const clock = new ManualClock();
  const sightings = new Sightings(clock);
  for (let i = 0; i < MANY; i++) sightings.read(`/${i}`, held("1"), null);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) sightings.read(`/later/${i}`, held("1"), null);
  assert.ok(sightings.size <= MANY + 10_000, `${sightings.size} are remembered`);
  // What was forgotten is alive as far as we know: never the other way round.
  assert.equal(sightings.judge("/0", held("1")).grants[0]?.leftMs, TTL_MS);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) sightings.read("/one", held("1"), null);
  assert.ok(sightings.size <= 10_001, `${sightings.size} are remembered`);
});

test("one of ours that was forgotten can be renewed, and nothing is promised of it", async () => {
  const clock = new ManualClock();
  const sightings = new Sightings(clock);
  sightings.wrote("/ours", held("1"), clock.now());
  assert.equal(sightings.judge("/ours", held("1")).grants[0]?.sureMs, TTL_MS);
  await clock.advance(60_000);
  for (let i = 0; i < MANY; i++) sightings.read(`/${i}`, held("1"), null);
  const [judged] = sightings.judge("/ours", held("1")).grants;
  assert.deepEqual([judged?.leftMs, judged?.sureMs], [TTL_MS, 0]);
});

function held(token: string): Ledger {
  const terms = { mode: "exclusive", limit: null, tokens: 1, ttlMs: TTL_MS } as const;
  const state = { beat: 0, order: 0, index: 0, revoked: false, left: false };
  const holding = { ...terms, token, lockDelayMs: 0, label: "", ...state };
  return { ...emptyLedger(), grants: { hash: holding } };
}
