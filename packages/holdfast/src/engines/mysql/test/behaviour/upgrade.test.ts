// Tables of version 5 are updated to this version, with their grants and waiters.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import { FencedOutError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { fenceInTransaction, init } from "../../index.js";
import { describeWithMysql, type MysqlTestServer } from "../support/test-server.fixture.js";

const options = { prefix: "old_" };
const NOW = "old_now_us(UTC_TIMESTAMP(6))";

describeWithMysql({}, (it) => {
  it("tables of version 5 are updated, and their grants and waiters are kept", async (server) => {
    const [first, second, waiter] = [mintGrantId(), mintGrantId(), mintGrantId()];
    await makeOld(server, [first, second], waiter);
    // Reads the tables for a while, like a dump.
    const reader = await server.connection();
    await reader.query("START TRANSACTION");
    await reader.query("SELECT COUNT(*) FROM old_grants");
    let done = false;
    const updated = init(server.pool(), options).then(() => {
      done = true;
    });
    await sleep(1_500);
    assert.equal(done, false, "tables were changed under a reader");
    await reader.query("COMMIT");
    await updated;
    const engine = server.engine(options);
    const resource = "semaphore";
    const view = await engine.inspect(resource, now());
    assert.deepEqual(
      view.holders.map(({ token }) => token),
      [5n, 6n],
    );
    assert.equal(view.waiters.length, 1);
    // Each old token is still known, although it does not begin a range of this version.
    const user = await server.connection();
    const fence = async (token: bigint) => {
      await user.query("START TRANSACTION");
      const sequencer = `shared:${token}:${resource}`;
      await fenceInTransaction(user, sequencer, options).finally(() => user.query("ROLLBACK"));
    };
    await fence(5n);
    await fence(6n);
    await assert.rejects(fence(7n), FencedOutError);
    const another = claim(resource, { mode: "shared", limit: 2 });
    assert.equal((await engine.tryAcquire(another, now())).kind, "busy", "both permits are taken");
    await engine.release([{ resource, grantId: first, tombstoneMs: 0 }], now());
    await assert.rejects(fence(5n), FencedOutError);
    const [turn] = await engine.queue!.heartbeat([{ resource, grantId: waiter }], now());
    assert.ok(turn!.kind === "granted" && turn!.token > 6n);
    await fence(turn!.token);
    assert.equal(await server.count("grants"), 0, "tables of another prefix are others");
  });
});

/** Creates tables as version 5 left them: two of two permits are taken, and one claim waits. */
async function makeOld({ admin }: MysqlTestServer, [first, second]: string[], waiter: string) {
  await init(admin, options);
  await admin.query(`
    DROP TABLE old_fences;
    ALTER TABLE old_resources DROP COLUMN held, DROP COLUMN counted_us, DROP COLUMN heard_us;
    ALTER TABLE old_waiters DROP COLUMN nth, DROP KEY sharing;
    ALTER TABLE old_grants DROP KEY holders, ADD KEY resource (resource),
      ADD KEY fence (resource, shared, revoked, token, tokens);
    INSERT INTO old_resources (name, last_token, used_us) VALUES ('semaphore', 6, ${NOW});
    INSERT INTO old_grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
        expires_us, label)
      VALUES (X'${first}', 'semaphore', 1, 2, 5, 1, 60000, 0, ${NOW} + 60000000, ''),
        (X'${second}', 'semaphore', 1, 2, 6, 1, 60000, 0, ${NOW} + 60000000, '');
    INSERT INTO old_waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms, joined_us,
        heard_us, owner, label)
      VALUES (X'${waiter}', 'semaphore', 1, 2, 1, 60000, 0, ${NOW}, ${NOW} + 60000000, X'00', '');
    DROP PROCEDURE old_version;
    CREATE PROCEDURE old_version() SELECT 5 AS answer`);
}
