// Listing many names: the server's work is linear, and a page is small.
import assert from "node:assert/strict";
import { fill } from "../support/names.fixture.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

// SCAN walks the table of keys, which has up to twice as many entries as there are keys.
const MOST_PER_NAME = 1.5;
const MOST_CALLS_PER_PAGE = 16;
const PAGE = 256;

describeWithServer("list", (it) => {
  it("a list asks for each name once, in pages, however many there are", async (redis) => {
    const costs: number[] = [];
    for (const count of [1_000, 4_000]) {
      await redis.admin.flushall();
      await fill(redis.admin, count);
      costs.push((await listed(redis, count)) / count);
    }
    const [few, many] = costs as [number, number];
    assert.ok(many <= few * MOST_PER_NAME, `${few} calls a name among 1,000, ${many} among 4,000`);
    assert.ok(many <= MOST_CALLS_PER_PAGE / PAGE, `${many} calls a name`);
  });
});

/** Lists so many names, each once; gives how many calls that took. */
async function listed(redis: RedisTestServer, count: number): Promise<number> {
  const locks = redis.locks();
  await locks.inspect("warm up");
  await redis.admin.config("RESETSTAT");
  const names = new Set<string>();
  let views = 0;
  for await (const { resource } of locks.list()) {
    names.add(resource);
    views++;
  }
  assert.deepEqual([views, names.size], [count, count]);
  return (await redis.calls("evalsha")) + (await redis.calls("scan"));
}
