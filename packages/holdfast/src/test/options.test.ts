import assert from "node:assert/strict";
import { hostname } from "node:os";
import { test } from "node:test";
import type { EngineTraits } from "../engine.js";
import { MEMORY_TRAITS } from "../engines/memory/engine.js";
import { memoryEngine } from "../engines/memory/index.js";
import { UnsupportedError, UsageError } from "../errors.js";
import { Locks } from "../locks.js";
import {
  ACQUIRE_DEFAULTS,
  type AcquireOptions,
  type ConnectOptions,
  resolveAcquire,
  resolveConnect,
} from "../options.js";
import { flakyEngine } from "../testing/index.js";

function resolve(
  options: unknown,
  connect: ConnectOptions = {},
  traits: Partial<EngineTraits> = {},
) {
  const connection = resolveConnect(connect);
  const all = { ...MEMORY_TRAITS, ...traits };
  return resolveAcquire(options as AcquireOptions, connection, "test", all);
}

test("options left out get the documented defaults", () => {
  const terms = resolve({});
  assert.deepEqual(
    { ...terms },
    {
      ttlMs: 30_000,
      waitMs: 30_000,
      callTimeoutMs: 5_000,
      renew: true,
      renewEveryMs: 10_000,
      maxHoldMs: Infinity,
      graceMs: 1_000,
      mode: "exclusive",
      limit: null,
      lockDelayMs: 0,
      label: `${hostname()}/${process.pid}`,
      fair: "cohort",
      reentrant: false,
      retry: undefined,
      signal: undefined,
    },
  );
  assert.ok(Object.isFrozen(terms));
  assert.equal(ACQUIRE_DEFAULTS.ttlMs, 30_000);
});

test("the default ttl is limited to the engine's maximum, and a given ttl is not changed", () => {
  const traits = { ttl: { minMs: 100, maxMs: 10_000, stepMs: 1 } };
  assert.equal(resolve({}, {}, traits).ttlMs, 10_000);
  assert.equal(resolve({ ttlMs: undefined }, {}, traits).renewEveryMs, 10_000 / 3);
  const refused = { code: "USAGE", message: /ttlMs is 30000.*100 to 10000/ };
  assert.throws(() => resolve({ ttlMs: 30_000 }, {}, traits), refused);
  assert.throws(() => resolve({}, { defaults: { ttlMs: 30_000 } }, traits), refused);
});

test("grace is a tenth of the ttl, at most a second", () => {
  assert.equal(resolve({ ttlMs: 3_000 }).graceMs, 300);
  assert.equal(resolve({ ttlMs: 60_000 }).graceMs, 1_000);
});

test("an option that is undefined means its default, connect's before the library's", () => {
  assert.equal(resolve({ ttlMs: undefined }).ttlMs, 30_000);
  assert.equal(resolve({ ttlMs: undefined }, { defaults: { ttlMs: 7_000 } }).ttlMs, 7_000);
  assert.equal(resolve({ ttlMs: 8_000 }, { defaults: { ttlMs: 7_000 } }).ttlMs, 8_000);
});

const signal = "an AbortSignal";
const REFUSED: [options: Record<string, unknown>, name: string, got: string, wants: RegExp][] = [
  [{ ttlMs: 0 }, "ttlMs", "0", /whole number from 1 to 31536000000 \(1 ms to 365 days\)/],
  [{ ttlMs: 1.5 }, "ttlMs", "1.5", /whole number/],
  [{ ttlMs: "10s" }, "ttlMs", '"10s"', /whole number from 1 to 31536000000 /],
  [{ ttlMs: Number.NaN }, "ttlMs", "NaN", /whole number/],
  [{ ttlMs: Infinity }, "ttlMs", "Infinity", /whole number/],
  [{ ttlMs: 1_000n }, "ttlMs", "1000", /whole number/],
  [{ waitMs: -1 }, "waitMs", "-1", /0 or more, or Infinity/],
  [{ waitMs: Number.NaN }, "waitMs", "NaN", /0 or more/],
  [{ waitMs: "5" }, "waitMs", '"5"', /0 or more/],
  [{ callTimeoutMs: 0 }, "callTimeoutMs", "0", /1 or more/],
  [{ callTimeoutMs: Infinity }, "callTimeoutMs", "Infinity", /1 or more/],
  [{ renew: "yes" }, "renew", '"yes"', /true or false/],
  [{ renewEveryMs: 0 }, "renewEveryMs", "0", /1 or more/],
  [{ renewEveryMs: 30_000 }, "renewEveryMs", "30000", /less than ttlMs less drift and graceMs/],
  [{ ttlMs: 1_000, renewEveryMs: 900 }, "renewEveryMs", "900", /890/],
  [{ maxHoldMs: 0 }, "maxHoldMs", "0", /1 or more, or Infinity/],
  [{ graceMs: -1 }, "graceMs", "-1", /0 or more/],
  [{ graceMs: 30_000 }, "graceMs", "30000", /less than ttlMs less drift/],
  [{ ttlMs: 1_000, graceMs: 990 }, "graceMs", "990", /990/],
  [{ mode: "write" }, "mode", '"write"', /"exclusive" or "shared"/],
  [
    { limit: 2 },
    "limit",
    "2",
    /limit is 2; it needs mode: "shared" beside it, or must be left out/,
  ],
  [{ mode: "shared", limit: 0 }, "limit", "0", /whole number of 1/],
  [{ mode: "shared", limit: 1.5 }, "limit", "1.5", /whole number of 1/],
  [{ lockDelayMs: -5 }, "lockDelayMs", "-5", /0 or more/],
  [{ label: 5 }, "label", "5", /string/],
  [{ label: "x".repeat(257) }, "label", "", /at most 256/],
  [{ label: "a\0b" }, "label", "", /NUL/],
  [{ fair: "fifo" }, "fair", '"fifo"', /"cohort" or "strict"/],
  [{ reentrant: 1 }, "reentrant", "1", /true or false/],
  [{ retry: 5 }, "retry", "5", /iterable/],
  [{ retry: {} }, "retry", "", /iterable/],
  [{ signal: new AbortController() }, "signal", "", new RegExp(signal)],
  [{ signal: 5 }, "signal", "5", new RegExp(signal)],
];

for (const [options, name, got, wants] of REFUSED) {
  const shown = JSON.stringify(options, (_, v) => (typeof v === "bigint" ? `${v}n` : v))
    .slice(0, 60)
    .concat(Object.values(options).some((v) => Number.isNaN(v)) ? " (NaN)" : "")
    .concat(Object.values(options).includes(Infinity) ? " (Infinity)" : "");
  test(`acquire refuses ${shown}, and names the option, its value and what it must be`, () => {
    assert.throws(
      () => resolve(options),
      (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.ok(error.message.startsWith(`${name} is ${got}`), error.message);
        assert.match(error.message, wants);
        return true;
      },
    );
  });
}

test("a relation is refused before any call to the engine", async () => {
  const engine = flakyEngine(memoryEngine());
  const locks = new Locks(engine);
  await assert.rejects(locks.acquire("a", { renewEveryMs: 40_000 }), UsageError);
  await assert.rejects(locks.tryAcquire("a", { limit: 3 }), UsageError);
  await assert.rejects(locks.acquire(""), UsageError);
  assert.equal(engine.calls("enqueue") + engine.calls("tryAcquire"), 0);
});

test("an unknown option is refused by its name", () => {
  assert.throws(() => resolve({ ttl: 5 }), /acquire has no option "ttl".*ttlMs/);
  assert.throws(() => resolveConnect({ clok: 1 } as ConnectOptions), /no option "clok"/);
  assert.throws(() => resolve(null), UsageError);
  assert.throws(() => resolve(5), UsageError);
});

test("an unknown name in connect's defaults or cohort is refused too", () => {
  const connect = (options: unknown) => new Locks(memoryEngine(), options as ConnectOptions);
  assert.throws(() => connect({ defaults: { ttl: 5 } }), /ttl/);
  assert.throws(() => connect({ cohort: { handovers: 5 } }), /handovers/);
});

test("wrong defaults are refused at connect", () => {
  assert.throws(() => new Locks(memoryEngine(), { defaults: { ttlMs: -1 } }), UsageError);
  assert.throws(() => new Locks(memoryEngine(), { drift: 0.6 }), /drift is 0.6/);
  assert.throws(() => new Locks(memoryEngine(), { drift: -0.1 }), /drift is -0.1/);
  for (const handOvers of [-1, 1_025, 1.5]) {
    assert.throws(() => new Locks(memoryEngine(), { cohort: { handOvers } }), /cohort.handOvers/);
  }
  assert.throws(() => new Locks(memoryEngine(), { cohort: { ms: -1 } }), /cohort.ms is -1/);
});

test("connect copies its defaults", () => {
  const defaults: { ttlMs: number } = { ttlMs: 5_000 };
  const connection = resolveConnect({ defaults });
  defaults.ttlMs = -1;
  assert.equal(resolveAcquire({}, connection, "test", MEMORY_TRAITS).ttlMs, 5_000);
});

test("drift counts in every relation between options", () => {
  assert.throws(() => resolve({ ttlMs: 1_000, graceMs: 500 }, { drift: 0.5 }), /graceMs is 500/);
  resolve({ ttlMs: 1_000, graceMs: 499 }, { drift: 0.5 });
});

test("a ttl that the engine cannot keep is refused with its bounds", () => {
  const ttl = { minMs: 1_000, maxMs: 60_000, stepMs: 1 };
  assert.throws(
    () => resolve({ ttlMs: 999 }, {}, { ttl }),
    /whole number from 1000 to 60000 \(1 s to 60 s\).*test/,
  );
  assert.throws(() => resolve({ ttlMs: 60_001 }, {}, { ttl }), UsageError);
  assert.equal(resolve({ ttlMs: 60_000 }, {}, { ttl }).ttlMs, 60_000);
});

test("the shortest ttl that an engine keeps can be asked for", () => {
  assert.equal(resolve({ ttlMs: 1, renew: false }).ttlMs, 1);
  for (const ttlMs of [1, 2, 3, 10]) {
    const { renewEveryMs, graceMs } = resolve({ ttlMs });
    assert.ok(renewEveryMs < ttlMs * 0.99 - graceMs);
  }
});

test("an option that the engine does not support is refused by name", () => {
  const refuses = (options: AcquireOptions, traits: Partial<EngineTraits>, what: RegExp) =>
    assert.throws(
      () => resolve(options, {}, traits),
      (error) => error instanceof UnsupportedError && what.test(error.message),
    );
  refuses({ mode: "shared" }, { modes: ["exclusive"] }, /shared mode/);
  refuses({ mode: "shared", limit: 3 }, { limits: false }, /limits/);
  refuses({ lockDelayMs: 5 }, { lockDelay: false }, /lockDelayMs/);
  resolve({}, {}, { modes: ["exclusive"], limits: false, lockDelay: false });
});

test("renewEveryMs need not fit a lease that is not renewed", () => {
  assert.equal(resolve({ ttlMs: 1_000, renew: false, renewEveryMs: 5_000 }).renew, false);
});

test("an option that is null is refused", async () => {
  const names = [
    ...[
      "ttlMs",
      "waitMs",
      "callTimeoutMs",
      "renew",
      "renewEveryMs",
      "maxHoldMs",
      "graceMs",
      "mode",
    ],
    ...["limit", "lockDelayMs", "label", "fair", "reentrant", "retry", "signal"],
  ];
  const locks = new Locks(memoryEngine());
  const refusal = (name: string) => (error: unknown) => {
    assert.ok(error instanceof UsageError, `${name}: ${String(error)}`);
    assert.equal(error.message, `${name} is null; only undefined means that it is left out`);
    return true;
  };
  for (const name of names) {
    const options = { [name]: null } as AcquireOptions;
    assert.throws(() => resolve(options), refusal(name));
    await assert.rejects(locks.acquire("a", options), refusal(name));
    if (name !== "signal") {
      assert.throws(
        () => new Locks(memoryEngine(), { defaults: options as object }),
        refusal(name),
      );
    }
    if (name !== "mode") await locks.run("a", { [name]: undefined }, () => 1);
  }
  for (const name of ["defaults", "drift", "cohort", "clock"]) {
    const options = { [name]: null } as object;
    assert.throws(() => new Locks(memoryEngine(), options), refusal(name));
  }
  const cohort = { handOvers: null } as object;
  assert.throws(() => new Locks(memoryEngine(), { cohort }), refusal("handOvers"));
  await assert.rejects(
    locks.once("a", { atMostMs: 5, atLeastMs: null } as never, () => 1),
    refusal("atLeastMs"),
  );
  assert.throws(() => memoryEngine({ store: null } as never), refusal("store"));
});

test("every option of the type is known at run time", () => {
  const all: Required<AcquireOptions> = {
    ttlMs: 10_000,
    waitMs: Infinity,
    callTimeoutMs: 100,
    renew: true,
    renewEveryMs: 1_000,
    maxHoldMs: 5_000,
    graceMs: 0,
    mode: "shared",
    limit: 2,
    lockDelayMs: 1,
    label: "",
    fair: "strict",
    reentrant: true,
    retry: [1, 2],
    signal: new AbortController().signal,
  };
  assert.deepEqual({ ...resolve(all) }, all);
});

test("tryAcquire refuses waitMs and retry", async () => {
  const locks = new Locks(memoryEngine());
  for (const options of [{ waitMs: 5 }, { retry: [1] }]) {
    await assert.rejects(locks.tryAcquire("a", options as object), UsageError);
  }
});
