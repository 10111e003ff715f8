// 100,000 names: the time is linear, the client holds one page at a time, and no page blocks the
// server for long.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { fill } from "../support/names.fixture.js";
import { describeWithServer } from "../support/test-server.fixture.js";

const NAMES = 100_000;
// On an idle machine a page takes 4 ms. A busy machine interrupts the server in the middle of a
// page.
const LONGEST_MS = 200;
const MOST_HEAP_MB = 60;

describeWithServer("list", (it) => {
  it("a list of 100,000 names neither blocks the server nor fills the memory", async (redis) => {
    const locks = redis.locks();
    const rates: number[] = [];
    for (const count of [NAMES / 10, NAMES]) {
      await redis.admin.flushall();
      await fill(redis.admin, count);
      await redis.admin.config("SET", "slowlog-log-slower-than", "1000");
      await redis.admin.slowlog("RESET");
      await redis.admin.config("RESETSTAT");
      let [views, most] = [0, 0];
      const before = process.memoryUsage().heapUsed;
      const startedAt = performance.now();
      for await (const { resource } of locks.list()) {
        assert.ok(resource.startsWith("name-"));
        views++;
        if (views % 1_000 === 0) most = Math.max(most, process.memoryUsage().heapUsed - before);
      }
      const tookMs = performance.now() - startedAt;
      assert.equal(views, count);
      const slow = (await redis.admin.slowlog("GET", 1_000)) as [number, number, number][];
      const longest = Math.max(0, ...slow.map(([, , micros]) => micros)) / 1_000;
      const micros = /cmdstat_evalsha:calls=\d+,usec=(\d+)/.exec(
        await redis.admin.info("commandstats"),
      );
      const heapMb = Math.round(most / 1e6);
      console.log(
        `# ${count} names: ${Math.round(tookMs)} ms, server ${Number(micros?.[1]) / count} us a name, ` +
          `longest call ${longest} ms, heap +${heapMb} MB`,
      );
      rates.push(Number(micros?.[1]) / count);
      assert.ok(longest < LONGEST_MS, `a call took ${longest} ms`);
      assert.ok(heapMb < MOST_HEAP_MB, `${heapMb} MB more`);
      await sleep(100);
    }
    const [few, many] = rates as [number, number];
    assert.ok(many < few * 3, `${few} us a name among ${NAMES / 10}, ${many} among ${NAMES}`);
  });
});
