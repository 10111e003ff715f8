import assert from "node:assert/strict";
import { test } from "node:test";
import { Background } from "./background.js";

test("settled waits for work that is begun while it waits", async () => {
  const background = new Background();
  const order: string[] = [];
  const step = (name: string) =>
    new Promise<void>((go) =>
      setImmediate(() => {
        order.push(name);
        if (name === "first") background.track(step("second"));
        go();
      }),
    );
  background.track(step("first"));
  background.track(Promise.reject(new Error("not heard of again")));
  await background.settled();
  assert.deepEqual(order, ["first", "second"]);
});
