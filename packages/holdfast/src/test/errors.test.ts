import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { test } from "node:test";
import type * as errors from "../errors.js";
import {
  AcquireTimeoutError,
  ClosedError,
  ContractError,
  EngineError,
  FencedOutError,
  HoldfastError,
  invariant,
  LeaseLostError,
  limitMismatch,
  MissingPeerError,
  UnsupportedError,
  UsageError,
} from "../errors.js";

const engineDetails = { effect: "unknown", retryable: true } as const;
const EACH: [HoldfastError, string][] = [
  [new UsageError("m"), "USAGE"],
  [new UnsupportedError("m"), "UNSUPPORTED"],
  [new MissingPeerError("m"), "MISSING_PEER"],
  [new ClosedError("m"), "CLOSED"],
  [new AcquireTimeoutError("r", 5, []), "ACQUIRE_TIMEOUT"],
  [new LeaseLostError("r", 1n, "expired", 0), "LEASE_LOST"],
  [new FencedOutError("m"), "FENCED_OUT"],
  [new EngineError("m", engineDetails), "ENGINE"],
  [new ContractError("m"), "CONTRACT"],
];

/** A second copy of the module, as a dependency with its own holdfast would have it. */
async function anotherCopy(): Promise<typeof errors> {
  return import(`../errors.js?copy=${randomUUID()}`);
}

test("every class has its code, its name and a stack", () => {
  for (const [error, code] of EACH) {
    assert.equal(error.code, code);
    assert.equal(error.name, error.constructor.name);
    assert.ok(error instanceof HoldfastError && error instanceof Error);
    assert.ok(error.stack?.includes("errors.test"));
  }
  assert.equal(new Set(EACH.map(([, code]) => code)).size, 9);
});

test("an error of one copy is an instance of the same class in another, and of no other class", async () => {
  const copy = await anotherCopy();
  assert.notEqual(copy.UsageError, UsageError);
  const theirs = copy as unknown as Record<string, new () => unknown>;
  for (const [error] of EACH) {
    for (const [other] of EACH) {
      const name = other.constructor.name;
      assert.equal(error instanceof theirs[name]!, error.constructor === other.constructor, name);
    }
    assert.ok(error instanceof copy.HoldfastError);
  }
});

test("a foreign error is no instance, whatever it looks like", () => {
  for (const value of [null, undefined, 5, "x", {}, new Error("m"), { code: "USAGE" }, () => {}]) {
    assert.equal(value instanceof HoldfastError, false);
    assert.equal(value instanceof UsageError, false);
  }
});

test("a class that a user derives is an instance of itself and of its base class", () => {
  class Mine extends UsageError {}
  const mine = new Mine("m");
  assert.ok(mine instanceof Mine && mine instanceof UsageError && mine instanceof HoldfastError);
  assert.equal(new UsageError("m") instanceof Mine, false);
});

test("a class that a user derives is an instance of its base class in another copy too", async () => {
  const copy = await anotherCopy();
  class Mine extends UsageError {}
  assert.ok(new Mine("m") instanceof copy.UsageError);
});

test("a copy whose class names a minifier changed is recognised, and confused with nothing", async () => {
  const copy = await anotherCopy();
  // A minifier may call every class "a"; the code is what stays.
  for (const value of Object.values(copy)) {
    if (typeof value === "function" && value.prototype instanceof Error) {
      Object.defineProperty(value, "name", { value: "a" });
    }
  }
  const theirs = new copy.UsageError("m");
  assert.ok(theirs instanceof UsageError);
  assert.equal(theirs instanceof EngineError, false);
  assert.equal(theirs instanceof copy.EngineError, false);
  assert.ok(new UsageError("m") instanceof copy.UsageError);
  assert.ok(new UsageError("m") instanceof copy.HoldfastError);
});

test("resource and cause are there when given, and absent when not", () => {
  const cause = new Error("below");
  const error = new UsageError("m", { resource: "r", cause });
  assert.equal(error.resource, "r");
  assert.equal(error.cause, cause);
  assert.equal("cause" in new UsageError("m"), false);
  assert.equal(new UsageError("m").resource, undefined);
});

test("the brand does not show in inspect, keys or JSON", () => {
  const error = new UsageError("m");
  assert.deepEqual(
    Object.keys(error).filter((key) => !["code", "name", "resource"].includes(key)),
    [],
  );
  assert.equal(
    Object.getOwnPropertySymbols(error).filter(
      (symbol) => Object.getOwnPropertyDescriptor(error, symbol)!.enumerable,
    ).length,
    0,
  );
});

test("a timeout names who holds, and says no more than is known", () => {
  const holder = { mode: "exclusive", token: 7n, label: "them", remainingMs: 5, revoked: false };
  const error = new AcquireTimeoutError("r", 12.6, [holder as never]);
  assert.match(error.message, /"r".*13 ms.*them \(token 7\)/);
  assert.equal(error.resource, "r");
  assert.equal(
    new AcquireTimeoutError("r", 1, []).message,
    '"r" was not granted within 1 ms; the backend named no holder',
  );
  const ours = { ...holder, label: `${hostname()}/${process.pid}` };
  assert.equal(
    new AcquireTimeoutError("r", 1, [ours as never, holder as never]).message,
    `"r" was not granted within 1 ms; held by this process, ${ours.label} (token 7), them (token 7)`,
  );
});

test("a message escapes the characters that a terminal would act upon", () => {
  const label = "\u001b]0;pwned\u0007\u001b[31mRED\nfake line\u009b1m\u202e\u2028";
  const holder = { mode: "exclusive", token: 7n, label, remainingMs: 5, revoked: false };
  const named = `a\r${label}`;
  const errors = [
    new AcquireTimeoutError(named, 1, [holder as never]),
    new LeaseLostError(named, 1n, "expired", 0),
    new EngineError(`the server says ${label}`, engineDetails),
    limitMismatch(named, 1, 2),
    new UsageError(`there is no ${label}`),
  ];
  for (const error of errors) {
    const shown = `${error.message}${error.stack?.split("\n    at ")[0]}${String(error)}`;
    assert.doesNotMatch(shown, /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u);
    assert.match(error.message, /\\u001b\[31mRED\\nfake line/);
  }
  const [timeout] = errors as [AcquireTimeoutError];
  assert.equal(timeout.holders[0]?.label, label, "programs get it as it is");
  assert.match(new UsageError("Grüße, 日本 👩‍👩‍👧").message, /^Grüße, 日本 👩‍👩‍👧$/);
});

test("LeaseLostError names the reason, the resource and the token", () => {
  for (const reason of ["expired", "replaced", "revoked", "unconfirmed", "max-hold"] as const) {
    const error = new LeaseLostError("r", 9n, reason, 3);
    assert.match(error.message, /"r" \(token 9\) was lost: ./);
    assert.deepEqual([error.reason, error.token, error.remainingMs], [reason, 9n, 3]);
  }
});

test("limitMismatch names both limits", () => {
  assert.match(limitMismatch("r", 3, null).message, /no limit.*limit 3/);
  assert.match(limitMismatch("r", null, 4).message, /limit 4.*no limit/);
});

test("a broken invariant is a ContractError that says why", () => {
  assert.throws(() => invariant(false, "because"), ContractError);
  assert.throws(() => invariant(false, "because"), /because/);
  invariant(true, "never shown");
});
