// One of three nodes has a clock that is a minute off from the start, and another node hangs. No two
// nodes are left that could agree on a fence.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ShiftedClock } from "@holdfast/servers";
import { EngineError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const TERMS = { maxTtlMs: 60_000, maxSkewMs: 5_000, nodeTimeoutMs: 2_000 };
const MINUTE = 60_000;

for (const offsetMs of [MINUTE, -MINUTE]) {
  describe(`one clock is off by ${offsetMs} ms, and another node hangs`, () => {
    const clock = new ShiftedClock();
    let quorum: TestQuorum;
    before(async () => {
      clock.set(offsetMs);
      quorum = await TestQuorum.start(3, TERMS, (node) => (node === 0 ? { env: clock.env } : {}));
    });
    after(async () => {
      await quorum[Symbol.asyncDispose]();
      clock[Symbol.dispose]();
    });

    it("an acquire fails at once, and the error names the clock", async () => {
      const locks = await quorum.locks();
      await (await locks.acquire("a")).release();
      quorum.servers[2]!.pause();
      try {
        const error = await refusal(locks);
        assert.match(error.message, /the clock of \S+ and those of others are more than 5000 ms/);
        assert.ok(error.message.includes(`${quorum.names[2]} did not answer in time`));
      } finally {
        quorum.servers[2]!.resume();
      }
    });

    it("a client that saw only these two clocks continues when the third node is back", async () => {
      quorum.servers[2]!.pause();
      const locks = await quorum.locks();
      try {
        assert.match((await refusal(locks)).message, /the clock of/);
      } finally {
        quorum.servers[2]!.resume();
      }
      const lease = await locks.acquire("a", { waitMs: 60_000, retry: Array(400).fill(50) });
      assert.equal(await lease.release(), "released");
    });
  });
}

async function refusal(locks: Locks): Promise<EngineError> {
  const error = await locks.acquire("a", { waitMs: 20_000 }).then(
    () => assert.fail("granted by one node and a half"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof EngineError, String(error));
  return error;
}
