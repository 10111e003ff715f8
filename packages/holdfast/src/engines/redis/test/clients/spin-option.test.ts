// Spinning is an option. The results are the same with it and without.
import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { mock, test } from "node:test";
import { parseEngineUrl } from "../../../../url.js";
import type { RedisConnection } from "../../clients/connection.js";
import { resolveRedis, termsFromUrl } from "../../options.js";
import { ScriptBatcher } from "../../sending/script-batcher.js";
import { CLIENT_NAMES, describeWithServer } from "../support/test-server.fixture.js";

test("spin must be true or false, as an option and in a URL", () => {
  const inUrl = (query: string) => termsFromUrl(parseEngineUrl(`redis://h${query}`)).spin;
  assert.deepEqual([inUrl(""), inUrl("?spin=true"), inUrl("?spin=false")], [true, true, false]);
  assert.throws(() => inUrl("?spin=no"), /spin is "true" or "false", got "no"/);
  assert.deepEqual([resolveRedis({}).spin, resolveRedis({ spin: false }).spin], [true, false]);
  const wrong = { spin: "false" } as unknown as { spin: boolean };
  assert.throws(() => resolveRedis(wrong), /spin is "false"; it must be true or false/);
});

for (const spin of [true, false]) {
  test(`with spin ${spin}, the loop ${spin ? "spins" : "does not spin"} for a caller that does one thing at a time`, async () => {
    const runScript = () => new Promise((resolve) => process.nextTick(resolve, 1));
    const terms = { idleMs: 1, channelOf: () => "here", wait: null, spin };
    const batcher = new ScriptBatcher({ runScript } as unknown as RedisConnection, terms);
    const reader = { read: (answer: unknown) => answer, fail: (error: unknown) => error };
    const turns = mock.method(globalThis, "setImmediate");
    try {
      for (let i = 0; i < 100; i++) await batcher.run("a", ["release", "id", "0"], reader);
      assert.equal(turns.mock.callCount() > 0, spin && availableParallelism() > 1);
    } finally {
      turns.mock.restore();
    }
  });
}

describeWithServer("spin: false", (it) => {
  for (const client of CLIENT_NAMES) {
    it(`locks, waits, renews and hands over (${client})`, async (redis) => {
      const [ours, theirs] = [1, 2].map(() => redis.locks({ client, spin: false })) as [
        ReturnType<typeof redis.locks>,
        ReturnType<typeof redis.locks>,
      ];
      let last = 0n;
      for (let i = 0; i < 200; i++) {
        const lease = await ours.acquire("a");
        assert.ok(lease.token > last);
        last = lease.token;
        assert.equal(await lease.release(), "released");
      }
      const held = await ours.acquire("a", { ttlMs: 5_000 });
      const waiting = theirs.acquire("a");
      await redis.untilWaiters(ours, "a", 1);
      await held.renew();
      assert.equal(await held.release(), "released");
      const lease = await waiting;
      assert.ok(lease.token > held.token);
      assert.equal(await lease.release(), "released");
    });
  }
});
