import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { MAX_TTL_MS, roll, ways } from "../support/survival.fixture.js";

describe("a lease outlives trouble that comes to one node after the other", {
  concurrency: 2,
}, () => {
  for (const [name, way] of Object.entries(ways)) {
    it(`five nodes are restarted ${name}, and eight wait for the lease`, { timeout: 300_000 }, () =>
      roll({ waiters: 8, ...way }),
    );
  }

  it("five nodes hang for longer than its ttl", { timeout: 300_000 }, () =>
    roll({
      waiters: 0,
      fault: async ({ servers }, node) => {
        servers[node]!.pause();
        await sleep(MAX_TTL_MS + 500);
        servers[node]!.resume();
      },
    }),
  );
});
