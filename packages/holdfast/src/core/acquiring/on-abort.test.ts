import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { onAbort } from "./on-abort.js";

test("a thousand waits on one signal use one listener, and none after the last wait ends", () => {
  const { signal } = new AbortController();
  const stops = Array.from({ length: 1_000 }, () => onAbort(signal, () => {}));
  assert.equal(getEventListeners(signal, "abort").length, 1);
  for (const stop of stops) stop();
  for (const stop of stops) stop();
  assert.equal(getEventListeners(signal, "abort").length, 0);
});

test("an abort calls every callback, even one added after others were removed", () => {
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

test("a callback that an earlier callback removed is not called", () => {
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

test("a callback on an aborted signal is called soon", async () => {
  let told = 0;
  onAbort(AbortSignal.abort(), () => told++);
  await new Promise((go) => setImmediate(go));
  assert.equal(told, 1);
});
