import assert from "node:assert/strict";
import { test } from "node:test";
import type { Claim } from "../../engine.js";
import { ContractError } from "../../errors.js";
import { Grant } from "../holding/grant.js";
import { TokenCheck } from "./token-check.js";

function grantOf(resource: string, token: bigint, tokens = 1, mode: Claim["mode"] = "exclusive") {
  const claim: Claim = {
    ...{ resource, grantId: "0".repeat(32), mode, limit: null, ttlMs: 1_000 },
    ...{ lockDelayMs: 0, tokens, label: "" },
  };
  const granted = { kind: "granted", token, tokens, since: 0, ttlMs: 1_000 } as const;
  return new Grant(claim, granted, 0, null);
}

test("a token that repeats, is lower or lies in the last range is a ContractError", () => {
  const tokens = new TokenCheck("memory");
  tokens.check(grantOf("a", 10n, 5));
  for (const token of [10n, 9n, 14n]) {
    assert.throws(() => tokens.check(grantOf("a", token)), ContractError);
  }
  tokens.check(grantOf("a", 15n));
  tokens.check(grantOf("b", 1n));
  tokens.check(grantOf("z", 0n));
});

test("a shared grant may have a lower token than an earlier shared one, an exclusive grant may not", () => {
  const tokens = new TokenCheck("memory");
  tokens.check(grantOf("a", 10n, 1, "shared"));
  tokens.check(grantOf("a", 9n, 1, "shared"));
  assert.throws(() => tokens.check(grantOf("a", 10n)), ContractError);
  tokens.check(grantOf("a", 11n));
});

test("the tokens of the most recent resources are remembered", () => {
  const tokens = new TokenCheck("memory");
  for (let i = 0; i < 1_025; i++) {
    tokens.check(grantOf(`r${i}`, 5n));
    tokens.check(grantOf("busy", BigInt(i)));
  }
  assert.throws(() => tokens.check(grantOf("busy", 0n)), ContractError);
  assert.throws(() => tokens.check(grantOf("r1024", 5n)), ContractError);
  tokens.check(grantOf("r0", 5n));
});
