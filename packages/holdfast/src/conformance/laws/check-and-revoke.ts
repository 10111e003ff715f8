import assert from "node:assert";
import type { LawGroup } from "../harness.js";
import { inOrder } from "../in-order.js";
import { law } from "../law.js";
import { handedOverLaws } from "./handed-over.js";
import { revocationLaws } from "./revocation.js";
import { toldHolderLaws } from "./told-holders.js";

export const checkAndRevoke: LawGroup = {
  id: "L18",
  name: "check and revoke",
  text:
    "Check says whether a live, unrevoked grant of this mode holds this token now. Revoke forbids " +
    "the renewal of exactly one grant and tells its holder; the successor follows at release or " +
    "expiry, or at once with force.",
  laws: inOrder([
    law("L18.1", "check is true for a live grant, and false for anything else", [], async (s) => {
      const [a, b] = await s.clients(2);
      const [resource, other] = [s.resource(), s.resource("other")];
      const { claim, token } = await a!.take(resource);
      assert.equal(await b!.check(resource, token), true, "a live grant");
      assert.equal(await b!.check(resource, token + 1n), false, "a token beyond it");
      assert.equal(await b!.check(resource, token - 1n), false, "a token before it");
      assert.equal(await b!.check(other, token), false, "another resource");
      assert.equal(await b!.check(resource, token, "shared"), false, "another mode");
      await a!.releaseHeld(claim);
      assert.equal(await b!.check(resource, token), false, "a released grant");
      const next = await b!.take(resource);
      assert.equal(await a!.check(resource, token), false, "a predecessor's token");
      assert.equal(await a!.check(resource, next.token), true, "the successor's token");
    }),

    law("L18.2", "check is false for an expired grant", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { token } = await a!.take(resource, { ttlMs: s.lifeMs });
      assert.equal(await b!.check(resource, token), true);
      await s.expire(resource, s.lifeMs, a!);
      assert.equal(await b!.check(resource, token), false);
    }),

    law(
      "L18.3",
      "check is true for each token of the range, and for none beyond",
      ["range"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const { granted } = await a!.take(resource, { tokens: Math.min(8, s.traits.tokenRange) });
        const last = granted.token + BigInt(granted.tokens - 1);
        for (let token = granted.token; token <= last; token++) {
          assert.equal(await b!.check(resource, token), true, `token ${token} of the range`);
        }
        assert.equal(await b!.check(resource, granted.token - 1n), false, "one before the range");
        assert.equal(await b!.check(resource, last + 1n), false, "one beyond the range");
      },
    ),

    law("L18.4", "check tells shared grants apart", ["shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource, { mode: "shared" });
      const second = await b!.take(resource, { mode: "shared" });
      await a!.releaseHeld(first.claim);
      assert.equal(await a!.check(resource, first.token, "shared"), false);
      assert.equal(await a!.check(resource, second.token, "shared"), true);
      assert.equal(await a!.check(resource, second.token, "exclusive"), false);
    }),

    law("L18.5", "check is false for a waiter until it is granted", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await a!.releaseHeld(held.claim);
      const { token } = await b!.untilGranted(waiter);
      assert.equal(await a!.check(resource, held.token), false);
      assert.equal(await a!.check(resource, token), true);
    }),

    ...revocationLaws,
    ...toldHolderLaws,
    ...handedOverLaws,
  ]),
};
