import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { execFile } from "node:child_process";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { hostInstant } from "./clock.js";
import { Timers } from "./timers.js";

/** Timers whose host's are mocked, and a way to let time pass, millisecond by millisecond. */
function stage(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  const turns: (() => void)[] = [];
  const delays: number[] = [];
  const timers = new Timers({
    now: () => now,
    soon: (go) => turns.push(go),
    setTimer: (go, ms) => {
      delays.push(ms);
      return setTimeout(go, ms);
    },
  });
  /** The event loop has turned. */
  const turn = () => {
    for (const go of turns.splice(0)) go();
  };
  const called: string[] = [];
  const set = (name: string, delayMs: number, then = () => {}) =>
    timers.set(
      delayMs,
      () => {
        called.push(`${name} at ${now}`);
        then();
      },
      true,
    );
  const pass = (ms: number) => {
    for (let i = 0; i < ms; i++) {
      turn();
      now++;
      t.mock.timers.tick(1);
    }
  };
  /** The callbacks of this turn take so long. */
  const block = (ms: number) => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  return { timers, called, set, pass, block, turn, delays };
}

test("each calls back at its own time, once, whatever their delays", (t) => {
  const { called, set, pass } = stage(t);
  set("a", 10);
  set("b", 5);
  pass(3);
  set("c", 10);
  set("d", 5);
  pass(50);
  assert.deepEqual(called, ["b at 5", "d at 8", "a at 10", "c at 13"]);
});

test("whoever is cancelled is not called, and those behind it keep their time", (t) => {
  const { called, set, pass } = stage(t);
  const [a, , c] = [set("a", 10), pass(2), set("c", 10)];
  pass(2);
  set("d", 10);
  a.cancel();
  c.cancel();
  c.cancel();
  pass(30);
  assert.deepEqual(called, ["d at 14"]);
});

test("one that is set after all others were cancelled has its own time, not theirs", (t) => {
  const { called, set, pass } = stage(t);
  set("a", 10).cancel();
  pass(7);
  set("b", 10);
  pass(30);
  assert.deepEqual(called, ["b at 17"]);
});

test("one that is set by another's callback does not hold up those before it", (t) => {
  const { called, set, pass } = stage(t);
  set("a", 10, () => set("later", 10));
  pass(3);
  set("b", 10);
  pass(30);
  assert.deepEqual(called, ["a at 10", "b at 13", "later at 20"]);
});

test("one that is set and cancelled by another's callback leaves the line as it was", (t) => {
  const { called, set, pass } = stage(t);
  set("a", 10, () => {
    set("never", 10).cancel();
    set("later", 10);
  });
  pass(5);
  set("b", 10);
  pass(30);
  assert.deepEqual(called, ["a at 10", "b at 15", "later at 20"]);
});

test("a callback that cancels the next one, due at the same time, spares it", (t) => {
  const { called, set, pass } = stage(t);
  let next = { cancel: () => {} };
  set("a", 10, () => next.cancel());
  next = set("b", 10);
  set("c", 10);
  pass(30);
  assert.deepEqual(called, ["a at 10", "c at 10"]);
});

test("what a callback throws is told, and costs the others nothing", (t) => {
  const { called, set, pass } = stage(t);
  set("a", 10, () => {
    throw new Error("odd");
  });
  set("b", 10);
  pass(2);
  set("c", 10);
  assert.throws(() => pass(8), /odd/);
  pass(30);
  assert.deepEqual(called.slice(0, 1), ["a at 10"]);
  assert.deepEqual(called.map((one) => one[0]).sort(), ["a", "b", "c"]);
});

test("one that is cancelled in the turn in which it was set needs none of the host's", (t) => {
  const { called, set, pass, delays } = stage(t);
  set("a", 10).cancel();
  pass(30);
  assert.deepEqual(delays, []);
  set("b", 10);
  pass(30);
  assert.deepEqual([called, delays], [["b at 40"], [10]]);
});

test("one that is set early in a long turn has its own time all the same", (t) => {
  const { called, set, pass, block, delays } = stage(t);
  set("a", 10);
  block(7);
  set("b", 10);
  pass(30);
  assert.deepEqual(called, ["a at 10", "b at 17"]);
  assert.deepEqual(delays, [3, 7], "one of the host's at a time");
  set("c", 10);
  block(25);
  pass(1);
  assert.deepEqual(called.slice(2), ["c at 63"]);
});

test("a line that was left and is set up anew in the same turn is one line", (t) => {
  const { timers, called, set, pass, turn } = stage(t);
  // More of them than are kept: those that nobody needs any more are forgotten at once.
  for (let delayMs = 100; delayMs < 120; delayMs++) set("other", delayMs);
  set("gone", 10).cancel();
  set("a", 10);
  turn();
  set("b", 10);
  assert.equal(timers.keepingAlive, 22);
  pass(99);
  assert.deepEqual(called, ["a at 10", "b at 10"]);
});

test("after many delays that nobody needs any more, new ones still call back", (t) => {
  const { called, set, pass } = stage(t);
  for (let delayMs = 1; delayMs < 100; delayMs++) set("cancelled", delayMs).cancel();
  set("a", 7);
  set("b", 99);
  pass(200);
  assert.deepEqual(called, ["a at 7", "b at 99"]);
});

test("those that keep the process alive are counted, each for itself", (t) => {
  const { timers, set, pass } = stage(t);
  const [a] = [set("a", 10), set("b", 10), timers.set(10, () => {}, false)];
  assert.equal(timers.keepingAlive, 2);
  a.cancel();
  assert.equal(timers.keepingAlive, 1);
  pass(10);
  assert.equal(timers.keepingAlive, 0);
});

test("nobody's async context is kept by the timers of others", async () => {
  const storage = new AsyncLocalStorage<string>();
  const timers = new Timers({
    now: hostInstant,
    soon: (go) => setImmediate(go),
    setTimer: (go, ms) => setTimeout(go, ms),
  });
  const seen = await storage.run("first", () => {
    timers.set(1, () => {}, true).cancel();
    return new Promise<string | undefined>((resolve) => {
      timers.set(1, () => resolve(storage.getStore()), true);
    });
  });
  assert.equal(seen, undefined);
});

test("the context in which the library is first imported is neither kept nor that of its events", async () => {
  // Before version 24 Node itself keeps the context of every import, that of an empty module too; and always
  // the one in which it loads a module of its own.
  const program = `
    import { AsyncLocalStorage } from "node:async_hooks";
    import "node:crypto";
    import "node:diagnostics_channel";
    import "node:os";
    import "node:util";
    const storage = new AsyncLocalStorage();
    function importedBy(request, what) {
      return storage.run(request, () => import(what)).then((it) => [it, new WeakRef(request)]);
    }
    const url = ${JSON.stringify(new URL("index.js", import.meta.url).href)};
    const [{ channels, connect }, ours] = await importedBy({ of: "a request" }, url);
    const [, plain] = await importedBy({ of: "another" }, "data:text/javascript,export{}");
    const locks = await connect("memory:");
    const renewed = new Promise((go) => channels.renewed.subscribe(() => go(storage.getStore())));
    const lease = await locks.acquire("a", { ttlMs: 60 });
    const keep = setTimeout(() => {}, 10_000);
    console.log(String(await renewed));
    clearTimeout(keep);
    await locks.close();
    for (let tries = 0; tries < 20; tries++) {
      await new Promise((go) => setTimeout(go, 5));
      globalThis.gc();
    }
    const isKept = (request) => request.deref() !== undefined;
    console.log(isKept(ours) && !isKept(plain) ? "kept by us" : "not kept by us");
  `;
  const args = ["--expose-gc", "--input-type=module", "-e", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  assert.equal(stdout, "undefined\nnot kept by us\n");
});
