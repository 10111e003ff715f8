// PgBouncer in transaction mode. pooler.long.test.ts runs all laws through it.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { startPgbouncer } from "@holdfast/servers";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({}, (it) => {
  it("behind a transaction pooler LISTEN receives nothing, which is reported once, and waiters poll", async (server) => {
    await using pooler = await startPgbouncer({ target: server.instance.port });
    const reported: string[] = [];
    const onFailed = (event: unknown) =>
      reported.push(String((event as { error: Error }).error.message));
    subscribe("holdfast:failed", onFailed);
    const [ours, other] = [
      server.locks({ port: pooler.port }),
      server.locks({ port: pooler.port }),
    ];
    const held = await other.acquire("a");
    const waiting = ours.acquire("a");
    await server.untilWaiters("a", 1);
    await until(
      "both are reported",
      () => reported.filter((text) => /pooler/.test(text)).length === 2,
    );
    unsubscribe("holdfast:failed", onFailed);
    await held.release();
    await (await waiting).release();
    // The head of the queue polls.
    await soon(800, async () => {
      const again = await other.acquire("a");
      const next = ours.acquire("a");
      await server.untilWaiters("a", 1);
      return timed(async () => {
        await again.release();
        await (await next).release();
      });
    });
  });

  it("contenders through the pooler never overlap, and tokens rise", async (server) => {
    await using pooler = await startPgbouncer({ target: server.instance.port, poolSize: 3 });
    const clients = [1, 2, 3].map(() => server.locks({ port: pooler.port, listen: false }));
    let inside = 0;
    const tokens: bigint[] = [];
    const work = clients.flatMap((locks) =>
      Array.from({ length: 5 }, async () => {
        const lease = await locks.acquire("b", { waitMs: 120_000, fair: "strict" });
        assert.equal(++inside, 1);
        tokens.push(lease.token);
        await sleep(2);
        inside--;
        await lease.release();
      }),
    );
    await Promise.all(work);
    assert.deepEqual(
      tokens,
      [...tokens].sort((a, b) => (a < b ? -1 : 1)),
    );
  });

  it("a pooler that is killed and comes back costs no lease", async (server) => {
    await using pooler = await startPgbouncer({ target: server.instance.port });
    const locks = server.locks({ port: pooler.port, listen: false });
    const lease = await locks.acquire("c", { ttlMs: 20_000 });
    await pooler.restart();
    await lease.renew();
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });
});
