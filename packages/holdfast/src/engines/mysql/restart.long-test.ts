// The database is killed under load and comes back: what it acknowledged is still so.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { scenes } from "./ground.fixture.js";

scenes({ durable: true }, (play) => {
  play("kill -9 under load: holders do not overlap, tokens rise, waiters go on", async (ground) => {
    const retry = { [Symbol.iterator]: forever };
    const options = { retry, waitMs: 60_000, ttlMs: 6_000, callTimeoutMs: 2_000 };
    const until = performance.now() + 8_000;
    const tokens: bigint[] = [];
    let holder: { readonly held: boolean } | null = null;
    const worker = async () => {
      const locks = ground.locks();
      while (performance.now() < until) {
        const lease = await locks.acquire("a", { ...options, fair: "strict" });
        assert.ok(holder === null || !holder.held, "two held it at once");
        holder = lease;
        tokens.push(lease.token);
        await sleep(2);
        if (holder === lease) holder = null;
        await lease.release().catch(() => {});
      }
    };
    const work = Promise.all([worker(), worker(), worker()]);
    work.catch(() => {});
    await sleep(1_500);
    await ground.server.restart();
    const back = performance.now();
    const before = tokens.length;
    while (tokens.length === before && performance.now() - back < 15_000) await sleep(20);
    assert.ok(tokens.length > before, "nobody went on within fifteen seconds");
    await work;
    for (const [i, token] of tokens.entries()) {
      if (i > 0) assert.ok(token > tokens[i - 1]!, `token ${token} came after ${tokens[i - 1]}`);
    }
  });
});

function* forever(): Generator<number> {
  for (;;) yield 50;
}
