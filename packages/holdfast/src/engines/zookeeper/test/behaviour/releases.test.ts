// The answer to a release is true, although the process deletes unwanted nodes by itself.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

/** Longer than the process waits for a release before it deletes the node by itself. */
const SLOW_MS = 1_300;
/** Longer than the interval in which the process looks for claims that are over. */
const LOOK_MS = 300;
const NOTICE_MS = 100;
const TOMBSTONE_MS = 120_000;

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

async function held(lockDelayMs = 0) {
  const relay = await zookeeper.relay();
  const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
  const one = claim(fresh(), { lockDelayMs });
  assert.equal((await engine.tryAcquire(one, now())).kind, "granted");
  return { relay, engine, one, releaseRef: { ...one, tombstoneMs: TOMBSTONE_MS } };
}

test("a repeated release finds its grant, however slowly the server answers", async () => {
  const { relay, engine, releaseRef } = await held();
  relay.hold();
  const released = engine.release([releaseRef], now());
  await sleep(SLOW_MS);
  relay.deliver();
  assert.deepEqual(await released, [{ kind: "released" }]);
});

test("a slow release leaves no lock-delay behind", async () => {
  const { relay, engine, one, releaseRef } = await held(60_000);
  relay.hold();
  const released = engine.release([releaseRef], now());
  await sleep(SLOW_MS);
  relay.deliver();
  await released;
  const next = await zookeeper.engine().tryAcquire(claim(one.resource), now());
  assert.equal(next.kind, "granted");
});

test("a heartbeat of a grant that is being released deletes nothing", async () => {
  const { relay, engine, one, releaseRef } = await held();
  const released = engine.release([releaseRef], now());
  // As if it was sent before the release: it finds a claim that nobody wants any more.
  const [answer] = await engine.queue!.heartbeat([one], now());
  relay.hold();
  assert.equal(answer!.kind, "unknown");
  await sleep(LOOK_MS);
  relay.deliver();
  assert.deepEqual(await released, [{ kind: "released" }]);
});

test("a release that could not be sent has an unknown effect, and may still happen", async () => {
  const { relay, engine, one } = await held();
  relay.cut();
  // Until the client notices it. A request that was sent before that is unanswered, not unsent.
  await sleep(NOTICE_MS);
  const [failed] = await engine.release([{ ...one, tombstoneMs: 0 }], now(300));
  assert.ok(failed?.kind === "failed" && failed.effect === "unknown");
  relay.mend();
  const other = zookeeper.engine();
  const isGone = async () => (await other.inspect(one.resource, now())).holders.length === 0;
  await until("it is taken away", isGone);
});
