import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineError } from "../../errors.js";
import { Ground } from "./ground.fixture.js";
import { rotate } from "./rotation.fixture.js";

test("nodes that forget in turn: no overlap and no stale write in 15 s", async (t) => {
  const report = await rotate(15_000, 5_000);
  t.diagnostic(JSON.stringify(report));
  assert.ok(report.grants > 0 && report.restarts >= 3);
});

test("two restarts within one ttl make two holders, but for the quarantine", async () => {
  const terms = { maxTtlMs: 60_000 };
  for (const unsafeSkipQuarantine of [false, true]) {
    await using ground = await Ground.start(3, terms);
    const settings = unsafeSkipQuarantine ? { unsafeSkipQuarantine } : {};
    const [first, second] = [await ground.locks(settings), await ground.locks(settings)];
    const lease = await first.acquire("a", { renew: false });
    await ground.servers[0]!.restart();
    await ground.servers[1]!.restart();
    const options = { waitMs: 2_000, retry: Array(20).fill(50) };
    const other = await second.acquire("a", options).catch((error: unknown) => error);
    assert.equal(lease.held, true);
    if (unsafeSkipQuarantine) {
      assert.ok(!(other instanceof Error), `the violation does not show: ${other}`);
    } else assert.ok(other instanceof EngineError && /quarantine/.test(other.message));
  }
});
