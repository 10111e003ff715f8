// What an engine remembers of its waiters, and what it leaves behind.
import assert from "node:assert/strict";
import type pg from "pg";
import { UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({}, (it) => {
  it("a claim that is refused for its limit is not remembered", async (server) => {
    const [pool, other] = [server.pool(), server.engine()];
    const engine = postgresEngine({ client: pool, listen: false });
    await other.tryAcquire(claim("a", { mode: "shared", limit: 2 }), now());
    for (let i = 0; i < 3; i++) {
      const refused = claim("a", { mode: "shared", limit: 3 });
      await assert.rejects(engine.queue!.enqueue(refused, now()), UsageError);
    }
    const sent = statementsOf(pool);
    await engine.close();
    assert.deepEqual(sent, [], "what is remembered is withdrawn at the end");
  });

  it("a queued claim whose repeat fails is still remembered", async (server) => {
    const [ours, other] = [server.engine({ listen: false }), server.engine({ listen: false })];
    const [held, waits] = [claim("b"), claim("b", { mode: "shared", limit: 2 })];
    await other.tryAcquire(held, now());
    assert.equal((await ours.queue!.enqueue(waits, now())).kind, "queued");
    const blocker = await server.client();
    await blocker.query("BEGIN; SELECT FROM holdfast.resources WHERE name = 'b' FOR UPDATE");
    await assert.rejects(ours.queue!.enqueue(waits, now(300)));
    await blocker.query("ROLLBACK");
    await ours.close();
    assert.equal(
      (await other.inspect("b", now())).waiters.length,
      0,
      "it was withdrawn at the end",
    );
  });

  it("an engine that closes releases a grant that it did not know of", async (server) => {
    const [ours, other] = [server.engine({ listen: false }), server.engine({ listen: false })];
    const held = claim("c");
    await other.tryAcquire(held, now());
    assert.equal((await ours.queue!.enqueue(claim("c"), now())).kind, "queued");
    await other.release([{ ...held, tombstoneMs: 0 }], now());
    await ours.close();
    assert.equal((await other.tryAcquire(claim("c"), now())).kind, "granted");
  });
});

/** The statements sent over the sessions of a pool from now on. */
function statementsOf(pool: pg.Pool): string[] {
  const sent: string[] = [];
  pool.on("acquire", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      sent.push(JSON.stringify(args[0]));
      return query(...args);
    }) as typeof client.query;
  });
  return sent;
}
