import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { redisCli } from "./redis-cli.js";
import { startSentinel } from "./sentinel.js";

test("a primary with two replicas and three sentinels comes up, fails over, and leaves nothing behind", async () => {
  const group = await startSentinel();
  try {
    const first = await group.primary();
    assert.equal(first, group.servers[0]);
    assert.equal(group.servers.length, 3);
    assert.equal(group.sentinelPorts.length, 3);
    await redisCli(first.port, "SET", "a", "1");
    assert.equal((await redisCli(first.port, "WAIT", "2", "20000")).trim(), "2");
    process.kill(first.pid, "SIGKILL");
    const second = await group.failedOver(first);
    assert.notEqual(second, first);
    assert.equal((await redisCli(second.port, "GET", "a")).trim(), "1");
    assert.equal((await redisCli(second.port, "SET", "a", "2")).trim(), "OK");
  } finally {
    await group.stop();
  }
  for (const server of group.servers) assert.equal(existsSync(server.folder), false);
  for (const port of [...group.sentinelPorts, ...group.servers.map((one) => one.port)]) {
    await assert.rejects(redisCli(port, "PING"), /Could not connect|refused/i);
  }
  await group.stop();
});
