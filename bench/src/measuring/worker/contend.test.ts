import assert from "node:assert/strict";
import { test } from "node:test";
import { instant } from "../instant.js";
import { contend } from "./contend.js";

test("one section in sixteen lasts a turn of the event loop, even if many enter at once", async () => {
  let turn = 0;
  let sections = 0;
  let long = 0;
  let waiting: (() => void)[] = [];
  const letAllIn = () => {
    turn++;
    const all = waiting;
    waiting = [];
    for (const letIn of all) letIn();
  };
  const turns = setInterval(letAllIn, 1);
  const subject = {
    async acquire() {
      await new Promise<void>((letIn) => waiting.push(letIn));
      const enteredIn = turn;
      return async () => {
        sections++;
        if (turn > enteredIn) long++;
      };
    },
  };
  // Counts turns of the event loop, so that a section which lasted one is seen.
  const nextTurn = () => {
    turn++;
    next = setImmediate(nextTurn);
  };
  let next = setImmediate(nextTurn);
  const from = instant();
  try {
    await contend(subject, { waiters: 64, apart: true, from, until: from + 400 });
  } finally {
    clearInterval(turns);
    clearImmediate(next);
  }
  assert.ok(sections > 128, `${sections} sections`);
  assert.ok(long > 0 && long <= sections / 16 + 1, `${long} of ${sections} sections were long`);
});
