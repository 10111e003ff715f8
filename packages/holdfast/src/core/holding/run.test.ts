import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Engine } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { AcquireTimeoutError, LeaseLostError, UsageError } from "../../errors.js";
import { channels } from "../../events.js";
import { Locks } from "../../locks.js";
import { setUp } from "../test/set-up.fixture.js";
import type { Lease } from "./lease.js";

test("run returns fn's value, with and without options, and releases", async () => {
  const { locks, store } = setUp();
  assert.equal(await locks.run("a", () => 1), 1);
  assert.equal(await locks.run("a", { ttlMs: 5_000 }, async (lease) => lease.held), true);
  assert.equal(store.resources.size, 0);
});

test("run rejects with fn's error, thrown or rejected, and releases", async () => {
  const { locks, store } = setUp();
  const error = new Error("fn's own");
  const thrower = () => {
    throw error;
  };
  await assert.rejects(locks.run("a", thrower), error);
  await assert.rejects(
    locks.run("a", () => Promise.reject(error)),
    error,
  );
  assert.equal(store.resources.size, 0);
});

test("run refuses arguments in a wrong order or number, and names the right order", async () => {
  const { engine, locks } = setUp();
  let ran = 0;
  const fn = () => ++ran;
  const run = locks.run.bind(locks) as (...args: unknown[]) => Promise<unknown>;
  const order = /run is called as run\(name, fn\) or run\(name, options, fn\), and got run\(/;
  for (const [args, got] of [
    [["a", fn, { waitMs: 200 }], /got run\(name, a function, an object with waitMs\)/],
    [["a", fn, "garbage"], /got run\(name, a function, a string\)/],
    [["a", fn, fn], /got run\(name, a function, a function\)/],
    [["a", {}, fn, 5], /got run\(name, an empty object, a function, 5\)/],
    [["a", {}], /got run\(name, an empty object\)/],
    [["a", {}, 5], /got run\(name, an empty object, 5\)/],
    [["a", "b", fn], /got run\(name, a string, a function\)/],
    [["a", null, fn], /got run\(name, null, a function\)/],
    [["a"], /got run\(name\)/],
  ] as const) {
    await assert.rejects(run(...args), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, order);
      assert.match(error.message, got);
      return true;
    });
  }
  assert.equal(engine.calls("enqueue") + ran, 0);
  assert.equal(await run("a", fn, undefined), 1, "what is undefined was left out");
  assert.equal(await run("a", undefined, fn), 2);
});

test("run without a function is refused before any call", async () => {
  const { engine, locks } = setUp();
  await assert.rejects(locks.run("a", {} as never), UsageError);
  await assert.rejects(locks.run("a", {}, 5 as never), UsageError);
  assert.equal(engine.calls("enqueue"), 0);
});

test("run rejects with LeaseLostError once fn has settled, although fn returned a value", async () => {
  const { clock, locks } = setUp();
  let settled = false;
  const running = locks.run("a", { ttlMs: 3_000 }, async () => {
    clock.pause(5_000);
    await Promise.resolve();
    settled = true;
    return "value";
  });
  await assert.rejects(running, (error) => {
    assert.ok(error instanceof LeaseLostError);
    assert.equal(error.cause, undefined);
    return true;
  });
  assert.ok(settled);
});

test("a run that lost its lease rejects with fn's error as the cause", async () => {
  const { clock, locks } = setUp();
  const own = new Error("fn's own");
  const running = locks.run("a", { ttlMs: 3_000 }, () => {
    clock.pause(5_000);
    throw own;
  });
  await assert.rejects(running, (error) => {
    assert.ok(error instanceof LeaseLostError);
    assert.equal(error.cause, own);
    return true;
  });
});

test("a run whose fn rethrows the loss rejects with that error", async () => {
  const { clock, locks } = setUp();
  let seen: unknown;
  const running = locks.run("a", { ttlMs: 3_000 }, (lease) => {
    clock.pause(5_000);
    seen = lease.signal.reason;
    lease.assertHeld();
  });
  await assert.rejects(running, (error) => {
    assert.equal(error, seen);
    assert.equal((error as Error).cause, undefined);
    return true;
  });
});

test("a run whose fn error was caused by the loss has no circular causes", async () => {
  // Every Node API that takes a signal does this: an AbortError whose cause is the signal's reason.
  const locks = new Locks(memoryEngine());
  const running = locks.run("a", { ttlMs: 60, renew: false }, (lease) =>
    delay(5_000, undefined, { signal: lease.signal }),
  );
  const error = await running.catch((e: Error) => e);
  assert.ok(error instanceof LeaseLostError);
  const chain = new Set<unknown>();
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    assert.ok(!chain.has(at), "a logger that follows causes never ends");
    chain.add(at);
  }
  await locks.close();
});

test("a release that fails hides neither fn's value nor its error", async () => {
  const { clock, engine, locks } = setUp();
  const mend = engine.cut.bind(engine);
  for (const fails of [false, true]) {
    let restore = () => {};
    const running = locks
      .run(`r${fails}`, async () => {
        restore = mend();
        if (fails) throw new Error("fn's own");
        return "value";
      })
      .catch((error: Error) => error.message);
    await clock.advance(1_000);
    assert.equal(await running, fails ? "fn's own" : "value");
    restore();
  }
});

for (const [form, work] of [
  ["a run", (locks: Locks) => locks.run("a", () => "value")],
  [
    "a block with await using",
    async (locks: Locks) => {
      await using _ = await locks.acquire("a");
      return "value";
    },
  ],
] as const) {
  test(`${form} whose release gets no answer ends after one call's time, and repeats the release`, async () => {
    const { clock, engine, locks, held } = setUp({ defaults: { callTimeoutMs: 500 } });
    engine.inject("release", { kind: "hang", carriedOut: false });
    engine.inject("release", { kind: "hang", carriedOut: false });
    let value: string | null = null;
    work(locks).then((result) => {
      value = result;
    });
    await clock.advance(499);
    assert.equal(value, null);
    await clock.advance(1);
    assert.equal(value, "value");
    assert.equal(held("a"), 1);
    await clock.advance(1_000);
    assert.equal(held("a"), 0, "the release was not repeated");
  });
}

test("a run whose release fails in the end, after its value was returned, says so in an event", async () => {
  const { clock, engine, locks } = setUp({ defaults: { callTimeoutMs: 500 } });
  const failed: string[] = [];
  const note = (message: unknown) => failed.push((message as { during: string }).during);
  channels.failed.subscribe(note);
  for (let i = 0; i < 3; i++) engine.inject("release", { kind: "hang", carriedOut: false });
  const run = locks.run("a", () => "value");
  await clock.advance(500);
  assert.equal(await run, "value");
  await clock.advance(1_200);
  channels.failed.unsubscribe(note);
  assert.deepEqual(failed, ["release"]);
});

test("a run whose fn released the lease returns fn's value", async () => {
  const { engine, locks } = setUp();
  assert.equal(await locks.run("a", (lease) => lease.release()), "released");
  assert.equal(engine.calls("release"), 1);
});

test("a run whose release is answered gone rejects with LeaseLostError", async () => {
  // The grant ended at the backend while fn worked, and no renewal noticed it.
  const { locks, store } = setUp();
  const running = locks.run("a", () => {
    store.resources.get("a")!.grants.clear();
    return "value";
  });
  await assert.rejects(running, LeaseLostError);
});

test("a reentrant acquire inside run joins the enclosing lease, without a call", async () => {
  const { engine, locks } = setUp();
  await locks.run("a", async (outer) => {
    const calls = engine.calls("enqueue");
    const inner = await locks.acquire("a", { reentrant: true });
    assert.equal(inner.token, outer.token);
    assert.equal(inner.sequencer, outer.sequencer);
    assert.equal(inner.signal, outer.signal);
    assert.equal(engine.calls("enqueue"), calls);
    assert.equal(await inner.release(), "released");
    assert.equal(inner.held, false);
    assert.ok(outer.held, "a joined release leaves the outer one held");
  });
});

test("a joined lease is not held after its release: assertHeld and renew refuse", async () => {
  const { locks } = setUp();
  await locks.run("a", async () => {
    const inner = await locks.acquire("a", { reentrant: true });
    inner.assertHeld();
    await inner.release();
    assert.equal(inner.remainingMs(), 0);
    assert.throws(() => inner.assertHeld(), UsageError);
    await assert.rejects(inner.renew(), UsageError);
  });
});

test("nested runs join through several levels, and other resources are separate", async () => {
  const { locks } = setUp();
  const options = { reentrant: true };
  const tokens = await locks.run("a", options, (a) =>
    locks.run("b", options, (b) => locks.run("a", options, (again) => [a, b, again].map(tokenOf))),
  );
  assert.equal(tokens[0], tokens[2]);
  assert.notEqual(tokens[0], tokens[1]);
});

test("an inner run that finds the lease lost rejects, and so does the outer", async () => {
  const { clock, locks } = setUp();
  let inner: unknown;
  const running = locks.run("a", { ttlMs: 3_000 }, async () => {
    inner = await locks
      .run("a", { reentrant: true }, () => clock.pause(5_000))
      .catch((error: Error) => error);
    return "value";
  });
  await assert.rejects(running, LeaseLostError);
  assert.ok(inner instanceof LeaseLostError);
});

test("an outer lease that fn released does not count as lost for the run that joined it", async () => {
  const { locks } = setUp();
  const running = locks.run("a", (outer) =>
    locks.run("a", { reentrant: true }, async () => {
      assert.equal(await outer.release(), "released");
      return "value";
    }),
  );
  assert.equal(await running, "value");
});

test("without reentrant, an acquire inside run waits for the resource like any other", async () => {
  const { locks } = setUp();
  await locks.run("a", async () => {
    assert.equal(await locks.tryAcquire("a"), null);
  });
});

test("the error of an acquire inside a run of its own resource names that run and reentrant: true", async () => {
  const store = new MemoryStore();
  await using locks = new Locks(memoryEngine({ store }));
  await using other = new Locks(memoryEngine({ store }));
  const refused = async (what: Parameters<typeof locks.acquire>[1], says: RegExp) => {
    for (const waitMs of [0, 20]) {
      await assert.rejects(locks.acquire("a", { waitMs, ...what }), (error) => {
        assert.ok(error instanceof AcquireTimeoutError);
        assert.match(error.message, says);
        assert.equal(error.holders.length, 1);
        return true;
      });
    }
  };
  const joins = /your own enclosing run holds it, and an acquire with reentrant: true joins it/;
  await locks.run("a", () => refused({}, joins));
  await locks.run("a", () => locks.run("b", () => refused({ fair: "strict" }, joins)));
  await locks.run("a", () => refused({ mode: "shared" }, joins));
  await locks.run("a", { mode: "shared", limit: 1 }, () =>
    refused({ mode: "shared", limit: 1 }, joins),
  );
  const cannot = /your own enclosing run holds it as shared, and cannot become exclusive/;
  await locks.run("a", { mode: "shared" }, () => refused({}, cannot));
  // A caller that waits for others gets no such hint.
  const held = await other.acquire("a");
  await locks.run("b", () => refused({}, new RegExp(`held by .* \\(token ${held.token}\\)$`)));
});

test("a shared lease is not joined by an exclusive acquire", async () => {
  const { locks } = setUp();
  await locks.run("a", { mode: "shared" }, async () => {
    await assert.rejects(locks.acquire("a", { reentrant: true }), UsageError);
    const shared = await locks.acquire("a", { mode: "shared", reentrant: true });
    assert.equal(shared.mode, "shared");
  });
});

test("only an acquire of the same Locks in the same context joins", async () => {
  const { locks, other } = setUp();
  let later: Lease | null = null;
  await locks.run("a", async () => {
    assert.equal(await other.tryAcquire("a", { reentrant: true }), null);
  });
  await locks.run("a", async () => {
    queueMicrotask(() => {});
  });
  later = await locks.tryAcquire("a", { reentrant: true });
  assert.ok(later?.held, "outside run there is nothing to join: it is a lease of its own");
  assert.equal(await later.release(), "released");
});

test("work that outlives its run joins no lease", async () => {
  const { locks, engine } = setUp();
  let straggler: Promise<Lease | null> | undefined;
  let go = () => {};
  const gate = new Promise<void>((open) => {
    go = open;
  });
  await locks.run("a", async () => {
    straggler = gate.then(() => locks.tryAcquire("a", { reentrant: true }));
  });
  const before = engine.calls("tryAcquire");
  go();
  const lease = await straggler!;
  assert.ok(lease?.held);
  assert.equal(engine.calls("tryAcquire"), before + 1, "it asked the backend");
});

function tokenOf(lease: Lease): bigint {
  return lease.token;
}

test("run returns fn's value although the engine's release throws synchronously", async () => {
  const engine = memoryEngine();
  const thrower: Engine = Object.assign(Object.create(engine) as Engine, {
    release: () => {
      throw new Error("not even a promise");
    },
  });
  const locks = new Locks(thrower);
  assert.equal(await locks.run("a", () => "value"), "value");
});
