// When the event loop is kept turning: no server decides that, so none is needed here.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AdaptiveSpin } from "./adaptive-spin.js";

function stage(processors = 2, isCrowded = () => false) {
  let now = 1_000;
  const pending: (() => void)[] = [];
  const soon = (go: () => void) => pending.push(go);
  const spin = new AdaptiveSpin({ now: () => now, soon, processors, isCrowded });
  return {
    spin,
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
  const { spin, pass, awake } = stage();
  spin.onRequest();
  assert.ok(!awake());
  spin.onAnswer();
  pass(5);
  spin.onRequest();
  assert.ok(!awake());
});

test("a question right after an answer is awaited awake, until its own answer comes", () => {
  const { spin, turn, awake } = stage();
  spin.onAnswer();
  for (let i = 0; i < 100; i++) {
    spin.onRequest();
    assert.ok(awake());
    assert.equal(turn(0.05), 5, "it turns while nobody answers");
    spin.onAnswer();
    assert.ok(turn(1) <= 1, "and not after");
    assert.ok(!awake());
  }
});

test("nobody is awaited for longer than 0.15 ms", () => {
  const { spin, turn, awake } = stage();
  spin.onAnswer();
  spin.onRequest();
  const turns = turn(10);
  assert.ok(turns >= 14 && turns <= 16, `${turns} turns of 0.01 ms`);
  assert.ok(!awake());
});

/** Asks until so many were awaited awake; gives how many questions were left out before. */
function ask(
  { spin, turn, pass, awake }: ReturnType<typeof stage>,
  count: number,
  answeredAfterMs: number,
): number {
  let leftOut = 0;
  for (let kept = 0; kept < count; ) {
    spin.onRequest();
    if (awake()) kept++;
    else leftOut++;
    turn(answeredAfterMs);
    if (answeredAfterMs > 0.15) pass(answeredAfterMs - 0.15);
    spin.onAnswer();
    turn(1);
  }
  return leftOut;
}

test("where somebody else is given the processor meanwhile, the process sleeps, and it was in vain", () => {
  const scene = stage();
  const { spin, turn, pass, awake } = scene;
  spin.onAnswer();
  for (let i = 0; i < 13; i++) {
    spin.onRequest();
    assert.ok(awake());
    // Until its first turn a client may still be writing.
    pass(0.055);
    assert.equal(turn(0.01), 1);
    pass(0.055);
    assert.equal(turn(10), 1);
    assert.ok(!awake());
    spin.onAnswer();
  }
  assert.equal(ask(scene, 1, 0.05), 128);
});

test("twelve late answers in 128 are borne, and thirteen are not", () => {
  for (const [late, leftOut] of [
    [12, 0],
    [13, 128],
  ] as const) {
    const scene = stage();
    scene.spin.onAnswer();
    for (let round = 0; round < 3; round++) {
      assert.equal(ask(scene, 128 - late, 0.05), 0);
      assert.equal(ask(scene, late, 0.7), 0);
      assert.equal(ask(scene, 128, 0.05), leftOut);
    }
  }
});

test("far from the server nearly all questions let the process sleep", () => {
  const { spin, turn, pass, awake } = stage();
  spin.onAnswer();
  let kept = 0;
  for (let i = 0; i < 100_000; i++) {
    spin.onRequest();
    if (awake()) kept++;
    turn(10);
    pass(0.5);
    spin.onAnswer();
  }
  assert.ok(kept > 200 && kept < 260, `${kept} of 100,000`);
});

test("once answers come soon again, it is kept as often as ever", () => {
  const scene = stage();
  scene.spin.onAnswer();
  ask(scene, 200, 0.7);
  ask(scene, 128 * 8, 0.05);
  assert.equal(ask(scene, 13, 0.7), 0);
  assert.equal(ask(scene, 1, 0.05), 128);
});

test("where many want the processors, the process sleeps", () => {
  let isCrowded = true;
  const scene = stage(2, () => isCrowded);
  scene.spin.onAnswer();
  assert.equal(ask(scene, 128, 0.05), 0);
  assert.equal(ask(scene, 128, 0.05), 128);
  assert.equal(ask(scene, 128, 0.05), 256);
  isCrowded = false;
  assert.equal(ask(scene, 128, 0.05), 512);
  assert.equal(ask(scene, 1_000, 0.05), 0);
});

test("on a single processor it would only keep the server from it", () => {
  const { spin, awake } = stage(1);
  spin.onAnswer();
  spin.onRequest();
  assert.ok(!awake());
});
