import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Canceller, onAbort } from "./canceller.js";

test("a canceller tells its listeners once, with the first reason", () => {
  const canceller = new Canceller();
  const seen: unknown[] = [];
  canceller.addEventListener("abort", () => seen.push(canceller.reason));
  assert.equal(canceller.aborted, false);
  canceller.abort("first");
  canceller.abort("second");
  assert.deepEqual(seen, ["first"]);
  assert.equal(canceller.reason, "first");
});

test("a listener that was removed is not told", () => {
  const canceller = new Canceller();
  const listener = () => assert.fail("told");
  canceller.addEventListener("abort", listener);
  canceller.removeEventListener("abort", listener);
  canceller.abort();
});

test("a follower is cancelled with the reason of the one it follows, until it stops", () => {
  const controller = new AbortController();
  const [follows, stopped] = [new Canceller(), new Canceller()];
  follows.follow(controller.signal);
  stopped.follow(controller.signal)();
  const reason = new Error("enough");
  controller.abort(reason);
  assert.equal(follows.reason, reason);
  assert.equal(stopped.aborted, false);
});

test("a follower of what is aborted already is cancelled at once", () => {
  const follower = new Canceller();
  follower.follow(AbortSignal.abort("before"));
  assert.equal(follower.reason, "before");
  new Canceller().follow(undefined)();
});

test("a thousand waits on one signal carry one listener, and none when the last has gone", () => {
  const { signal } = new AbortController();
  const stops = Array.from({ length: 1_000 }, () => onAbort(signal, () => {}));
  assert.equal(getEventListeners(signal, "abort").length, 1);
  for (const stop of stops) stop();
  for (const stop of stops) stop();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("everyone on one signal is told, even those who came after others had gone", () => {
  const controller = new AbortController();
  let told = 0;
  const count = () => {
    told++;
  };
  const stop = onAbort(controller.signal, count);
  stop();
  onAbort(controller.signal, count);
  onAbort(controller.signal, () => told++);
  controller.abort();
  assert.equal(told, 2);
});

test("a callback that another one stopped meanwhile is not called", () => {
  const controller = new AbortController();
  const stops: (() => void)[] = [];
  let called = false;
  const flag = () => {
    called = true;
  };
  onAbort(controller.signal, () => stops[0]?.());
  stops.push(onAbort(controller.signal, flag));
  controller.abort();
  assert.equal(called, false);
});

test("a callback on a signal that is aborted already is called, soon or at once", async () => {
  let told = 0;
  onAbort(AbortSignal.abort(), () => told++);
  await new Promise((go) => setImmediate(go));
  assert.equal(told, 1);
});
