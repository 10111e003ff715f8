// A server with a binary log, which MySQL has by default.
import assert from "node:assert/strict";
import { EngineError } from "../../../../errors.js";
import { init } from "../../index.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ binaryLog: true }, (it) => {
  it("every kind of hold can be installed, and works", async (server) => {
    const [rows] = await server.admin.query("SELECT @@GLOBAL.log_bin AS log");
    assert.equal((rows as { log: number }[])[0]!.log, 1, "the server has a binary log");
    await init(server.admin, { shedlock: "shedlock" });
    for (const hold of ["rows", "shedlock"] as const) {
      const [ours, other] = [server.locks({ hold }), server.locks({ hold })];
      const lease = await ours.acquire("a");
      assert.equal(await other.tryAcquire("a"), null);
      await lease.renew();
      assert.equal(await other.check(lease.sequencer), true);
      const waiting = other.acquire("a");
      assert.equal(await lease.release(), "released");
      const next = await waiting;
      assert.ok(next.token > lease.token);
      await next.release();
    }
  });

  it("the error for a user that may not create functions says what is missing", async (server) => {
    await server.admin.query("CREATE USER maker; GRANT ALL ON holdfast_test.* TO maker");
    const client = server.pool({ user: "maker", connectionLimit: 1 });
    await assert.rejects(init(client, { prefix: "maker_" }), (error: unknown) => {
      assert.ok(error instanceof EngineError, String(error));
      assert.match(error.message, /SUPER.*log_bin_trust_function_creators/);
      return error.effect === "none" && !error.retryable;
    });
    await server.admin.query("SET GLOBAL log_bin_trust_function_creators = 1");
    await init(client, { prefix: "maker_" });
    await server.admin.query("SET GLOBAL log_bin_trust_function_creators = 0");
    const lease = await server.locks({ client, prefix: "maker_" }).acquire("b");
    assert.equal(await lease.release(), "released");
  });

  it("binlog_format STATEMENT is refused with the setting to change", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    client.pool.on("connection", (connection) =>
      connection.query("SET SESSION binlog_format = 'STATEMENT'"),
    );
    await assert.rejects(server.locks({ client }).tryAcquire("c"), (error: unknown) => {
      assert.ok(error instanceof EngineError, String(error));
      assert.match(error.message, /binlog_format is STATEMENT.*ROW or MIXED/);
      return error.effect === "none" && !error.retryable;
    });
  });
});
