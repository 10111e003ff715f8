import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Ground } from "./ground.fixture.js";
import { RedisNode } from "./redis-node.js";

const CONTENDERS = 20;
const TURNS = 3;

test("twenty contenders split no vote for ever: all are served, one at a time", async (t) => {
  await using ground = await Ground.start(5, { maxTtlMs: 60_000 });
  const all = await Promise.all(Array.from({ length: CONTENDERS }, () => ground.locks()));
  const { ask } = RedisNode.prototype;
  let asked = 0;
  RedisNode.prototype.ask = function (request, answered) {
    if (request.verb === "acquire") asked++;
    return ask.call(this, request, answered);
  };
  let inside = 0;
  const tokens: bigint[] = [];
  const visit = async (locks: (typeof all)[number]) => {
    for (let turn = 0; turn < TURNS; turn++) {
      await locks.run("door", { waitMs: 60_000, fair: "strict" }, async (lease) => {
        assert.equal(++inside, 1);
        tokens.push(lease.token);
        await sleep(1);
        inside--;
      });
    }
  };
  const startedAt = performance.now();
  try {
    await Promise.all(all.map(visit));
  } finally {
    RedisNode.prototype.ask = ask;
  }
  const tookMs = performance.now() - startedAt;
  assert.equal(tokens.length, CONTENDERS * TURNS);
  assert.deepEqual(
    tokens,
    [...tokens].sort((a, b) => Number(a - b)),
  );
  const attempts = asked / 5 / tokens.length;
  t.diagnostic(
    `${attempts.toFixed(1)} attempts a grant, looks at a held lock included; ${(tookMs / tokens.length).toFixed(1)} ms a grant`,
  );
});
