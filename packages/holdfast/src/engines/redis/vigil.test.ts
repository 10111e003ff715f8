// When the event loop is kept turning: no server decides that, so none is needed here.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Vigil } from "./vigil.js";

function stage(processors = 2) {
  let now = 1_000;
  const pending: (() => void)[] = [];
  const vigil = new Vigil({ now: () => now, soon: (go) => pending.push(go), processors });
  return {
    vigil,
    /** Lets the event loop turn, 10 µs each time, for as long as it is kept from sleeping. */
    turn(mostMs: number): number {
      let turns = 0;
      for (const end = now + mostMs; now < end && pending.length > 0; turns++) {
        now += 0.01;
        pending.shift()!();
      }
      return turns;
    },
    pass(ms: number) {
      now += ms;
    },
    awake: () => pending.length > 0,
  };
}

test("the first question, and one that comes long after the last answer, let the process sleep", () => {
  const { vigil, pass, awake } = stage();
  vigil.asked();
  assert.ok(!awake());
  vigil.answered();
  pass(5);
  vigil.asked();
  assert.ok(!awake());
});

test("a question right after an answer is awaited awake, until its own answer comes", () => {
  const { vigil, turn, awake } = stage();
  vigil.answered();
  for (let i = 0; i < 100; i++) {
    vigil.asked();
    assert.ok(awake());
    assert.equal(turn(0.05), 5, "it turns while nobody answers");
    vigil.answered();
    assert.ok(turn(1) <= 1, "and not after");
    assert.ok(!awake());
  }
});

test("nobody is awaited for longer than 0.2 ms", () => {
  const { vigil, turn, awake } = stage();
  vigil.answered();
  vigil.asked();
  const turns = turn(10);
  assert.ok(turns >= 19 && turns <= 21, `${turns} turns of 0.01 ms`);
  assert.ok(!awake());
});

test("far from the server nearly all questions let the process sleep", () => {
  const { vigil, turn, pass, awake } = stage();
  vigil.answered();
  let kept = 0;
  for (let i = 0; i < 10_000; i++) {
    vigil.asked();
    if (awake()) kept++;
    turn(10);
    pass(0.5);
    vigil.answered();
  }
  assert.ok(kept > 10 && kept < 25, `${kept} of 10,000`);
});

test("one answer that comes late costs the next question its vigil, and no more", () => {
  const { vigil, turn, pass, awake } = stage();
  const answerAfter = (ms: number) => {
    turn(ms);
    if (ms > 0.2) pass(ms - 0.2);
    vigil.answered();
    turn(1);
  };
  vigil.answered();
  for (let i = 0; i < 10; i++) {
    vigil.asked();
    assert.ok(awake());
    answerAfter(0.7);
    vigil.asked();
    assert.ok(!awake());
    answerAfter(0.05);
    vigil.asked();
    assert.ok(awake());
    answerAfter(0.05);
  }
});

test("on a single processor it would only keep the server from it", () => {
  const { vigil, awake } = stage(1);
  vigil.answered();
  vigil.asked();
  assert.ok(!awake());
});
