import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../lease.js";
import type { Locks } from "../../locks.js";
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
    const other = await decided(second);
    assert.equal(lease.held, true);
    if (unsafeSkipQuarantine) assert.notEqual(other, "refused", "the violation does not show");
    else assert.equal(other, "refused");
  }
});

/** Asks until somebody was let in, or both restarted nodes have said why nobody is. */
async function decided(locks: Locks): Promise<Lease | "refused"> {
  for (let tries = 0; tries < 200; tries++) {
    const answer = await locks.tryAcquire("a").catch((error: unknown) => error as Error);
    if (answer instanceof Error) {
      if ((answer.message.match(/is in quarantine/g) ?? []).length === 2) return "refused";
    } else if (answer !== null) return answer;
    await sleep(50);
  }
  return "refused";
}
