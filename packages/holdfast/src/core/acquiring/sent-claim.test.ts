import assert from "node:assert/strict";
import { test } from "node:test";
import type { Claim } from "../../engine.js";
import { SentClaim } from "./sent-claim.js";

test("mayArrive is true until the request is answered, and for ever once an answer was lost", () => {
  const sent = new SentClaim({} as Claim);
  assert.equal(sent.mayArrive, false);
  sent.unanswered++;
  assert.ok(sent.mayArrive);
  sent.unanswered--;
  assert.equal(sent.mayArrive, false);
  sent.lost = true;
  assert.ok(sent.mayArrive);
});
