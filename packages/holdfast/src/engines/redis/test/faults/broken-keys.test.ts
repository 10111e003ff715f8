// Somebody has put a list in place of one of our keys. An operation that is then refused without
// effect must have none: the same claims hold, wait and have tombstones as before.
import assert from "node:assert/strict";
import type { Claim, Engine, Failed, Granted } from "../../../../engine.js";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { keysOf } from "../../protocol/keys.js";
import { describeWithServer, type RedisTestServer } from "../support/test-server.fixture.js";

const SHARED = { mode: "shared" } as const;

interface Setup {
  readonly ours: Engine;
  readonly holder: Claim;
  readonly token: bigint;
  readonly waiter: Claim;
}

type OperationUnderTest = (setup: Setup) => Promise<unknown>;

const OPERATIONS: Record<string, OperationUnderTest> = {
  release: ({ ours, holder }) => ours.release([{ ...holder, tombstoneMs: 0 }], now()),
  "release with a tombstone": ({ ours, holder }) =>
    ours.release([{ ...holder, tombstoneMs: 60_000 }], now()),
  "release of a waiter": ({ ours, waiter }) =>
    ours.release([{ ...waiter, tombstoneMs: 60_000 }], now()),
  renew: ({ ours, holder }) => ours.renew([{ ...holder, ttlMs: 20_000 }], now()),
  leave: ({ ours, holder }) => ours.renew([{ ...holder, ttlMs: 20_000, leave: true }], now()),
  "tryAcquire exclusive": ({ ours }) => ours.tryAcquire(claim("a"), now()),
  "tryAcquire shared": ({ ours }) => ours.tryAcquire(claim("a", SHARED), now()),
  "enqueue exclusive": ({ ours }) => ours.queue!.enqueue(claim("a"), now()),
  "enqueue shared": ({ ours }) => ours.queue!.enqueue(claim("a", SHARED), now()),
  "enqueue with a lock-delay": ({ ours }) =>
    ours.queue!.enqueue(claim("a", { lockDelayMs: 10 }), now()),
  heartbeat: ({ ours, waiter }) => ours.queue!.heartbeat([waiter], now()),
  withdraw: ({ ours, waiter }) => ours.queue!.withdraw(waiter, now()),
  revoke: ({ ours, token }) => ours.revoke({ resource: "a", token, force: false }, now()),
  "revoke by force": ({ ours, token }) => ours.revoke({ resource: "a", token, force: true }, now()),
};

describeWithServer("keys of another type", (it) => {
  for (const mode of ["exclusive", "shared", "free"] as const) {
    it(`an operation that is refused without effect has none (${mode})`, async (redis) => {
      const [ours, theirs] = [redis.engine(), redis.engine()];
      let refused = 0;
      for (const broken of keysOf("holdfast:a")) {
        for (const [name, operation] of Object.entries(OPERATIONS)) {
          await redis.admin.flushall();
          const setup = await setUp(ours, theirs, mode);
          await redis.admin.del(broken);
          await redis.admin.rpush(broken, "not a lock");
          const before = await state(redis);
          const effect = await effectOf(operation(setup));
          if (effect === null) continue;
          assert.equal(effect, "none");
          refused++;
          const said = `${name} with a list at ${broken} is refused without effect`;
          assert.deepEqual(await state(redis), before, said);
        }
      }
      assert.ok(refused > 20, `only ${refused} were refused: this proves little`);
    });
  }

  it("a release succeeds even if the next waiter cannot be promoted", async (redis) => {
    for (const broken of ["queue", "waiters", "fence"]) {
      await redis.admin.flushall();
      const [ours, theirs] = [redis.engine(), redis.engine()];
      const { holder } = await setUp(ours, theirs, "exclusive");
      await redis.admin.del(`{holdfast:a}:${broken}`);
      await redis.admin.rpush(`{holdfast:a}:${broken}`, "not a lock");
      const [answer] = await ours.release([{ ...holder, tombstoneMs: 0 }], now());
      assert.equal(answer!.kind, "released", broken);
      assert.equal(await redis.admin.exists("holdfast:a"), 0);
    }
  });
});

async function setUp(
  ours: Engine,
  theirs: Engine,
  mode: "exclusive" | "shared" | "free",
): Promise<Setup> {
  const holder = claim("a", mode === "shared" ? SHARED : {});
  const waiter = claim("a");
  if (mode === "free") return { ours, holder, token: 1_000_000n, waiter };
  const granted = (await ours.tryAcquire(holder, now())) as Granted;
  if (mode === "shared") await theirs.tryAcquire(claim("a", SHARED), now());
  await ours.queue!.enqueue(waiter, now());
  return { ours, holder, token: granted.token, waiter };
}

/** The effect of the failure; null if the operation succeeded. */
async function effectOf(work: Promise<unknown>): Promise<string | null> {
  try {
    const answer = await work;
    const one = (Array.isArray(answer) ? answer[0] : answer) as Failed | { kind: string } | string;
    return typeof one === "object" && one.kind === "failed" ? (one as Failed).effect : null;
  } catch (error) {
    assert.ok(error instanceof EngineError, String(error));
    return error.effect;
  }
}

/** Holders, waiters and tombstones, without the times of heartbeats and the last token. */
async function state({ admin }: RedisTestServer): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const key of (await admin.keys("*")).sort()) {
    const type = await admin.type(key);
    if (key.endsWith(":fence")) continue;
    if (type === "string") found[key] = await admin.get(key);
    else if (type === "zset") found[key] = await admin.zrange(key, "0", "-1");
    else if (type === "hash") found[key] = (await admin.hkeys(key)).sort();
    else found[key] = type;
  }
  return found;
}
