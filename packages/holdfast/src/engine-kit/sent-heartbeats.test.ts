// A push names the heartbeat after which its grant was made. The grant's validity counts from the
// moment when that heartbeat was sent. A number that is used twice would date an early grant to a
// late instant.
import assert from "node:assert/strict";
import { test } from "node:test";
import { claim } from "../test-support/claim.fixture.js";
import { SentHeartbeats } from "./sent-heartbeats.js";

test("a heartbeat number is never used twice, however often its waiter is forgotten", () => {
  const heartbeats = new SentHeartbeats();
  const ref = claim("a");
  const used = new Set<number>();
  for (let life = 0; life < 3; life++) {
    for (let beat = 0; beat < 3; beat++) used.add(heartbeats.next(ref, life));
    heartbeats.forget(ref.grantId);
  }
  assert.equal(used.size, 9);
  assert.ok(!used.has(0), "0 is the number of an enqueue that carries none");
});

test("a push is dated by the heartbeat that it names", () => {
  const heartbeats = new SentHeartbeats();
  const ref = claim("a");
  const first = heartbeats.next(ref, 1_000);
  const second = heartbeats.next(ref, 2_000);
  assert.equal(heartbeats.at(ref.grantId, first)?.since, 1_000);
  assert.equal(heartbeats.at(ref.grantId, second)?.since, 2_000);
  assert.equal(heartbeats.at(ref.grantId, second + 1), null);
  heartbeats.forget(ref.grantId);
  const third = heartbeats.next(ref, 3_000);
  assert.equal(heartbeats.at(ref.grantId, first), null);
  assert.equal(heartbeats.at(ref.grantId, third)?.since, 3_000);
});

test("an enqueue without a number keeps its first instant when it is repeated", () => {
  const heartbeats = new SentHeartbeats();
  const ref = claim("a");
  assert.equal(heartbeats.enqueue(ref, 1_000), true);
  assert.equal(heartbeats.enqueue(ref, 2_000), false);
  assert.equal(heartbeats.at(ref.grantId, 0)?.since, 1_000);
  assert.ok(heartbeats.next(ref, 3_000) > 0);
  assert.equal(heartbeats.at(ref.grantId, 0)?.since, 1_000);
});

test("the first and the last eight heartbeats of a waiter are remembered", () => {
  const heartbeats = new SentHeartbeats();
  const ref = claim("a");
  const beats = Array.from({ length: 12 }, (_, at) => heartbeats.next(ref, at));
  const known = beats.map((beat) => heartbeats.at(ref.grantId, beat)?.since ?? null);
  assert.deepEqual(known, [0, null, null, null, 4, 5, 6, 7, 8, 9, 10, 11]);
});

test("the latest heartbeat of a waiter is its enqueue until it sends another", () => {
  const heartbeats = new SentHeartbeats();
  const [early, late] = [claim("a"), claim("b")];
  heartbeats.enqueue(early, 1_000);
  heartbeats.enqueue(late, 2_000);
  heartbeats.next(late, 3_000);
  const beat = heartbeats.next(late, 4_000);
  const latest = heartbeats.latest().map(({ ref, beat, since }) => [ref.resource, beat, since]);
  assert.deepEqual(latest, [
    ["a", 0, 1_000],
    ["b", beat, 4_000],
  ]);
});

test("waiters are known until they are forgotten", () => {
  const heartbeats = new SentHeartbeats();
  const [one, other] = [claim("a"), claim("b")];
  heartbeats.enqueue(one, 0);
  heartbeats.next(other, 0);
  heartbeats.forget(one.grantId);
  assert.equal(heartbeats.find(one.grantId), null);
  assert.equal(heartbeats.find(other.grantId)?.resource, "b");
  assert.deepEqual(
    heartbeats.waiters.map(({ resource }) => resource),
    ["b"],
  );
});
