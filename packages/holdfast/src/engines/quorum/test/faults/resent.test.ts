// ioredis resends unanswered commands when it reconnects. If the first copy ran and the second copy is
// refused, the caller must not be told that nothing happened.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Relay } from "@holdfast/servers";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const MAX_LOOKS = 2_000;

test("a claim whose resent copies all nodes refuse fails with an unknown effect", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: 60_000 });
  const relays = await Promise.all(quorum.servers.map(({ port }) => Relay.start(port)));
  const limit = (memory: string) =>
    Promise.all(quorum.admins.map((admin) => admin.config("SET", "maxmemory", memory)));
  try {
    const engine = await quorum.engine(
      {},
      relays.map(({ port }) => quorum.connect(port)),
    );
    await engine.inspect("warm up", now());
    for (const relay of relays) relay.mute();
    const asked = engine.tryAcquire(claim("a"), now(20_000)).then(
      () => assert.fail("the claim was not refused"),
      (error: { code?: string; effect?: string }) => error,
    );
    const has = () => Promise.all(quorum.admins.map((admin) => admin.exists("holdfast:a")));
    for (let looks = 0; (await has()).includes(0); looks++) {
      assert.ok(looks < MAX_LOOKS, "the claim did not run on all nodes");
      await sleep(5);
    }
    await limit("1");
    for (const relay of relays) {
      relay.cut();
      relay.mend();
    }
    const { code, effect } = await asked;
    assert.deepEqual([code, effect], ["ENGINE", "unknown"]);
    await limit("0");
  } finally {
    await Promise.all(relays.map((relay) => relay.close()));
  }
});
