import assert from "node:assert/strict";
import { test } from "node:test";
import { UnansweredRequests } from "./unanswered-requests.js";

test("requests are unanswered until they are answered, and for ever once an answer was lost", () => {
  const requests = new UnansweredRequests();
  assert.equal(requests.exist, false);
  requests.unanswered++;
  assert.ok(requests.exist);
  requests.unanswered--;
  assert.equal(requests.exist, false);
  requests.lost = true;
  assert.ok(requests.exist);
});
