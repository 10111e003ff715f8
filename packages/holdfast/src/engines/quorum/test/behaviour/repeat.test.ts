// A claim is repeated with the same grantId while its first call is still under way. Two of three
// nodes hang, and one of them continues after the end of the first call and before that of the second.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { exponential } from "../../../../core/acquiring/retry.js";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import type { Claim, Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import type { NodeRequest } from "../../nodes/node.js";
import { RedisNode } from "../../nodes/redis-node.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const TERMS = { maxTtlMs: 60_000 };

test("a claim that acquire repeats after its deadline is not taken back by its first call", async () => {
  await using quorum = await TestQuorum.start(3, TERMS);
  const [a, b] = [await quorum.locks(), await quorum.locks()];
  const [, second, third] = quorum.servers;
  const held = await whilePaused(quorum, async () => {
    const acquired = a.acquire("r", {
      ...{ ttlMs: 30_000, callTimeoutMs: 900, waitMs: 20_000, fair: "strict" },
      retry: exponential({ minMs: 20, maxMs: 20 }),
    });
    await sleep(1_150);
    second!.resume();
    const lease = await acquired;
    third!.resume();
    return lease;
  });
  await sleep(100);
  assert.equal((await b.tryAcquire("r"))?.token, undefined, "a holds it");
  assert.equal(held.held, true);
  assert.equal(await b.check(held.sequencer), true);
});

test("the older of two calls with one grantId does not give up what the newer call got", async () => {
  await using quorum = await TestQuorum.start(3, TERMS);
  const [a, b] = [await quorum.engine(), await quorum.engine()];
  const [, second, third] = quorum.servers;
  const claim = claimOf("r");
  const [older, newer] = await whilePaused(quorum, async () => {
    const first = a.tryAcquire(claim, call()).catch((error: unknown) => error);
    await sleep(900);
    const again = a.tryAcquire(claim, call());
    await sleep(250);
    second!.resume();
    const answers = [await first, await again] as const;
    third!.resume();
    return answers;
  });
  assert.equal(newer.kind, "granted");
  assert.equal((older as Granted).token, (newer as Granted).token, "both are told of one grant");
  await sleep(100);
  assert.equal((await b.tryAcquire(claimOf("r"), call())).kind, "busy");
  const { token } = newer as Granted;
  assert.equal(await b.check({ resource: "r", mode: "exclusive", token }, call()), true);
  const [renewed] = await a.renew([{ ...claim, ttlMs: 10_000 }], call());
  assert.equal(renewed!.kind, "renewed");
});

test("the older of two calls fails with an unknown effect where the newer is not answered in time", async () => {
  await using quorum = await TestQuorum.start(3, TERMS);
  const engine = await quorum.engine();
  const claim = claimOf("r");
  await whilePaused(quorum, async () => {
    const first = engine.tryAcquire(claim, now(1_200));
    // On a busy machine the call fails before assert.rejects handles it.
    first.catch(() => {});
    await sleep(900);
    const again = engine.tryAcquire(claim, now(5_000)).catch((error: unknown) => error);
    await assert.rejects(first, { code: "ENGINE", effect: "unknown" });
    for (const server of quorum.servers.slice(1)) server.resume();
    assert.equal(((await again) as Granted).kind, "granted");
  });
});

test("a claim is answered within its call's time, however long a node may take", async () => {
  await using quorum = await TestQuorum.start(3, { ...TERMS, nodeTimeoutMs: 20_000 });
  const engine = await quorum.engine();
  await whilePaused(quorum, async () => {
    const timeoutMs = 3_000;
    // The core stops waiting at timeoutMs.
    await soon(timeoutMs, () =>
      timed(async () => {
        const asked = engine.tryAcquire(claimOf("r"), now(timeoutMs));
        await assert.rejects(asked, { code: "ENGINE", effect: "unknown" });
      }),
    );
  });
});

test("a claim that is repeated through another client is not taken back by the first client", async () => {
  await using quorum = await TestQuorum.start(3, TERMS);
  const { engine: first, hold, deliver } = await quorum.relayed();
  const [second, other] = [await quorum.engine(), await quorum.engine()];
  const claim = claimOf("r");
  await hold();
  await assert.rejects(first.tryAcquire(claim, now(200)), {
    code: "ENGINE",
    effect: "unknown",
  });
  const granted = await second.tryAcquire(claim, now(5_000));
  assert.equal(granted.kind, "granted");
  await deliver();
  await sleep(100);
  assert.equal((await other.tryAcquire(claimOf("r"), now(5_000))).kind, "busy");
  const { token } = granted as Granted;
  assert.equal(await other.check({ resource: "r", mode: "exclusive", token }, now()), true);
});

test("a renewal that reaches one node late does not shorten a later renewal there", async () => {
  await using quorum = await TestQuorum.start(3, TERMS);
  const engine = await quorum.engine();
  const claim = claimOf("r");
  assert.equal((await engine.tryAcquire(claim, now())).kind, "granted");
  const late = holdingBack(quorum.names[0]!, "renew");
  const { resource, grantId } = claim;
  const renew = (ttlMs: number) => engine.renew([{ resource, grantId, ttlMs }], now());
  try {
    assert.equal((await renew(10_000))[0]!.kind, "renewed", "the other two are enough");
    assert.equal((await renew(40_000))[0]!.kind, "renewed");
  } finally {
    late.deliver();
  }
  await sleep(100);
  const [left] = await Promise.all(quorum.admins.map((admin) => admin.hvals("holdfast:r")));
  const ends = Number(left![0]!.split(":")[9]);
  assert.ok(ends - Date.now() > 30_000, "the node has what the later renewal gave");
});

/** Holds back the first request of this kind to this node until deliver(). */
function holdingBack(name: string, verb: NodeRequest["verb"]) {
  const { ask } = RedisNode.prototype;
  let send: (() => void) | null = null;
  RedisNode.prototype.ask = function (request, answered) {
    if (send !== null || this.name !== name || request.verb !== verb) {
      ask.call(this, request, answered);
    } else send = () => ask.call(this, request, answered);
  };
  return {
    deliver: () => {
      RedisNode.prototype.ask = ask;
      send?.();
    },
  };
}

/** Runs `act` while all servers but the first are paused, and always resumes them. */
async function whilePaused<T>(quorum: TestQuorum, act: () => Promise<T>): Promise<T> {
  const paused = quorum.servers.slice(1);
  for (const server of paused) server.pause();
  try {
    return await act();
  } finally {
    for (const server of paused) server.resume();
  }
}

function claimOf(resource: string): Claim {
  const what = { mode: "exclusive", limit: null, ttlMs: 30_000, lockDelayMs: 0 } as const;
  return { resource, grantId: mintGrantId(), ...what, tokens: 1, label: "test" };
}

function call() {
  return now(5_000);
}
