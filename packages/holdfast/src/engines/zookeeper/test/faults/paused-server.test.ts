// The only server pauses for longer than half of a call's time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../../connect.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

// The connection is given up after 5.4 s, and 4.8 s are left when the server goes on.
const CALL_MS = 12_000;
const PAUSE_MS = 6_000;

for (const hold of ["session", "ttl"] as const) {
  test(`a tryAcquire outlives a pause that is shorter than its call, hold ${hold}`, async () => {
    await using zookeeper = await ZookeeperTestServer.start();
    const { server } = zookeeper;
    await using locks = await connect(`${server.url}/?hold=${hold}`);
    await locks.acquire(fresh(), { ttlMs: 30_000 });
    server.pause();
    const trying = locks.tryAcquire(fresh(), { ttlMs: 30_000, callTimeoutMs: CALL_MS });
    trying.catch(() => {});
    await sleep(PAUSE_MS);
    server.resume();
    assert.ok(await trying, "the resource is free");
  });
}
