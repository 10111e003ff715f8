// When the event loop spins. No server decides that, so these tests use none.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AdaptiveSpin } from "./adaptive-spin.js";

function setUp(processors = 2, isCrowded = () => false) {
  let now = 1_000;
  const pending: (() => void)[] = [];
  const soon = (go: () => void) => pending.push(go);
  const spin = new AdaptiveSpin({ now: () => now, soon, processors, isCrowded });
  return {
    spin,
    /** Turns the event loop, 10 µs each time, as long as it spins. Gives the number of turns. */
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
    spins: () => pending.length > 0,
  };
}

test("the first request, and one long after the last answer, do not spin", () => {
  const { spin, pass, spins } = setUp();
  spin.onRequest();
  assert.ok(!spins());
  spin.onAnswer();
  pass(5);
  spin.onRequest();
  assert.ok(!spins());
});

test("a request right after an answer spins until its own answer comes", () => {
  const { spin, turn, spins } = setUp();
  spin.onAnswer();
  for (let i = 0; i < 100; i++) {
    spin.onRequest();
    assert.ok(spins());
    assert.equal(turn(0.05), 5, "it does not spin before the answer");
    spin.onAnswer();
    assert.ok(turn(1) <= 1, "it spins after the answer");
    assert.ok(!spins());
  }
});

test("a spin takes no longer than 0.15 ms", () => {
  const { spin, turn, spins } = setUp();
  spin.onAnswer();
  spin.onRequest();
  const turns = turn(10);
  assert.ok(turns >= 14 && turns <= 16, `${turns} turns of 0.01 ms`);
  assert.ok(!spins());
});

/** Sends requests until so many have spun; gives how many did not spin. */
function ask(
  { spin, turn, pass, spins }: ReturnType<typeof setUp>,
  count: number,
  answeredAfterMs: number,
): number {
  let notSpun = 0;
  for (let kept = 0; kept < count; ) {
    spin.onRequest();
    if (spins()) kept++;
    else notSpun++;
    turn(answeredAfterMs);
    if (answeredAfterMs > 0.15) pass(answeredAfterMs - 0.15);
    spin.onAnswer();
    turn(1);
  }
  return notSpun;
}

test("a spin ends and counts as failed if another process gets the processor", () => {
  const setup = setUp();
  const { spin, turn, pass, spins } = setup;
  spin.onAnswer();
  for (let i = 0; i < 13; i++) {
    spin.onRequest();
    assert.ok(spins());
    // A client may still be writing before the first turn.
    pass(0.055);
    assert.equal(turn(0.01), 1);
    pass(0.055);
    assert.equal(turn(10), 1);
    assert.ok(!spins());
    spin.onAnswer();
  }
  assert.equal(ask(setup, 1, 0.05), 128);
});

test("twelve late answers of 128 do not stop the spinning, and thirteen do", () => {
  for (const [late, notSpun] of [
    [12, 0],
    [13, 128],
  ] as const) {
    const setup = setUp();
    setup.spin.onAnswer();
    for (let round = 0; round < 3; round++) {
      assert.equal(ask(setup, 128 - late, 0.05), 0);
      assert.equal(ask(setup, late, 0.7), 0);
      assert.equal(ask(setup, 128, 0.05), notSpun);
    }
  }
});

test("far from the server nearly no request spins", () => {
  const { spin, turn, pass, spins } = setUp();
  spin.onAnswer();
  let kept = 0;
  for (let i = 0; i < 100_000; i++) {
    spin.onRequest();
    if (spins()) kept++;
    turn(10);
    pass(0.5);
    spin.onAnswer();
  }
  assert.ok(kept > 200 && kept < 260, `${kept} of 100,000`);
});

test("requests spin as before once answers come soon again", () => {
  const setup = setUp();
  setup.spin.onAnswer();
  ask(setup, 200, 0.7);
  ask(setup, 128 * 8, 0.05);
  assert.equal(ask(setup, 13, 0.7), 0);
  assert.equal(ask(setup, 1, 0.05), 128);
});

test("requests do not spin if many processes need the processors", () => {
  let isCrowded = true;
  const setup = setUp(2, () => isCrowded);
  setup.spin.onAnswer();
  assert.equal(ask(setup, 128, 0.05), 0);
  assert.equal(ask(setup, 128, 0.05), 128);
  assert.equal(ask(setup, 128, 0.05), 256);
  isCrowded = false;
  assert.equal(ask(setup, 128, 0.05), 512);
  assert.equal(ask(setup, 1_000, 0.05), 0);
});

test("requests never spin on a single processor, which the server needs", () => {
  const { spin, spins } = setUp(1);
  spin.onAnswer();
  spin.onRequest();
  assert.ok(!spins());
});
