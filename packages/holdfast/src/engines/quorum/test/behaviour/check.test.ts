// The answers to one check are about different moments: one node answers at once, another late.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const TTL_MS = 4_000;

test("a lease that moved from one node to another during a check is alive", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: 60_000 });
  const [, second, third] = quorum.servers;
  const [holder, other] = [await quorum.locks(), await quorum.engine()];
  const lease = await holder.acquire("r", { ttlMs: TTL_MS, renew: false });
  const sequence = { resource: "r", mode: "exclusive", token: lease.token } as const;
  const renewFor = async (ms: number) => {
    for (const from = performance.now(); performance.now() - from < ms; await sleep(100)) {
      await lease.renew();
    }
  };
  third!.pause();
  await renewFor(TTL_MS + 100);
  third!.resume();
  second!.pause();
  // Node 1 has the grant, node 3 has lost it, and node 2 answers later with what it has then.
  const checked = other.check(sequence, now(30_000));
  await sleep(100);
  await renewFor(TTL_MS + 100);
  assert.equal(await quorum.admins[2]!.hlen("holdfast:r"), 1, "the third has it again");
  second!.resume();
  assert.equal(await checked, true);
  assert.ok(lease.held);
  assert.equal(await lease.release(), "released");
  assert.equal(await other.check(sequence, now()), false);
});
