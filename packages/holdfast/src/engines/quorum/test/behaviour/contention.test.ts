import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { RedisNode } from "../../nodes/redis-node.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const CONTENDERS = 20;
const TURNS = 2;

test("twenty contenders are all served, one at a time, although they split votes", async (t) => {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: 60_000, nodeTimeoutMs: 10_000 });
  const all = await Promise.all(Array.from({ length: CONTENDERS }, () => quorum.locks()));
  const { ask } = RedisNode.prototype;
  let asked = 0;
  const taking = new Set<string>();
  RedisNode.prototype.ask = function (request, answered) {
    if (request.verb !== "acquire") return ask.call(this, request, answered);
    asked++;
    return ask.call(this, request, (answer, us) => {
      if (answer.kind === "accepted") taking.add(`${request.id} ${request.attempt}`);
      answered(answer, us);
    });
  };
  let inside = 0;
  const tokens: bigint[] = [];
  const visit = async (locks: (typeof all)[number]) => {
    for (let turn = 0; turn < TURNS; turn++) {
      await locks.run(
        "door",
        { waitMs: 60_000, callTimeoutMs: 20_000, fair: "strict" },
        async (lease) => {
          assert.equal(++inside, 1);
          tokens.push(lease.token);
          await sleep(1);
          inside--;
        },
      );
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
  const each = (count: number) => (count / tokens.length).toFixed(1);
  t.diagnostic(
    `a grant: ${each(taking.size)} attempts that took a node, ${each(asked / 5)} with looks at a held lock, ${each(tookMs)} ms`,
  );
});
