// Errors of the driver contain the statement and its values. None of them is shown.
import assert from "node:assert/strict";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { eventsOf, keepsSecret } from "../../../../test-support/sql/secrets.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({}, (it) => {
  it("no failure shows a grantId, and each keeps the driver's error number", async (server) => {
    const engine = server.engine();
    const held = claim("a");
    await engine.tryAcquire(held, now());
    const blocker = await server.connection();
    await blocker.query("START TRANSACTION");
    await blocker.query("SELECT * FROM holdfast_resources WHERE name = 'a' FOR UPDATE");
    const [answer] = await engine.release([{ ...held, tombstoneMs: 0 }], now(2_000));
    assert.ok(answer?.kind === "failed");
    assert.ok(answer.error instanceof EngineError);
    assert.equal((answer.error.cause as { errno?: number }).errno, 1205);
    keepsSecret(answer.error, held.grantId);
    await blocker.query("ROLLBACK");
  });

  it("a driver's message that contains a value does not show the grantId", async (server) => {
    const engine = server.engine();
    await engine.tryAcquire(claim("warm"), now());
    await server.admin.query("DROP PROCEDURE holdfast_claim");
    await server.admin.query(`CREATE PROCEDURE holdfast_claim(IN p_op LONGTEXT CHARACTER SET ascii,
      IN p_at BIGINT, OUT p_answer LONGTEXT CHARACTER SET ascii)
      BEGIN INSERT INTO holdfast_tombstones VALUES
        (UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.id'))), 1),
        (UNHEX(JSON_UNQUOTE(JSON_EXTRACT(p_op, '$.id'))), 2); END`);
    // Only letters: the server shows these bytes as they are.
    const grantId = Buffer.from("ABCDEFGHIJKLMNOP").toString("hex");
    const events = await eventsOf(() =>
      assert.rejects(engine.tryAcquire(claim("b", { grantId }), now()), (error: EngineError) => {
        keepsSecret(error, grantId);
        assert.doesNotMatch(error.message, /ABCDEFGH/);
        assert.match(error.message, /Duplicate entry/);
        return error.effect === "unknown";
      }),
    );
    for (const event of events) keepsSecret(event, grantId);
  });
});
