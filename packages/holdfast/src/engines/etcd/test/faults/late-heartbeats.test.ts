// Heartbeats with late answers: the push of a grant may come first.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Granted } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay, putOf, readOf } from "../support/holding-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** Longer than a waiter without heartbeats is kept. */
const FORGOTTEN_MS = 4_000;
const TTL_MS = 10_000;

async function heartbeatWithSlowReading(slow: "own" | "other") {
  await using server = await startEtcd();
  await using relay = await new HoldingRelay(server.port).start();
  await using etcd = new EtcdTestServer(server);
  const [engine, other] = [etcd.engine({ endpoints: [relay.endpoint] }), etcd.engine()];
  const holders = [claim("first"), claim("other")];
  for (const one of holders) assert.equal((await other.tryAcquire(one, now())).kind, "granted");
  const waiters = [claim("first"), claim("other")];
  for (const one of waiters) assert.equal((await engine.queue!.enqueue(one, now())).kind, "queued");
  const pushed: Granted[] = [];
  engine.queue!.onGrant((_, granted) => pushed.push(granted));
  // The watches are open by then.
  await sleep(300);
  relay.holdAnswers(readOf(slow === "own" ? "holdfast/first/" : "holdfast/other/"));
  const heartbeat = engine.queue!.heartbeat(waiters, now());
  await until("the queue was read", () => relay.held > 0);
  await sleep(100);
  relay.stopHolding();
  await other.release([{ ...holders[0]!, tombstoneMs: 0 }], now());
  await until("the push has come", () => pushed.length === 1);
  const renew = async () =>
    (await engine.renew([{ ...waiters[0]!, ttlMs: TTL_MS }], now()))[0]!.kind;
  assert.equal(await renew(), "renewed");
  relay.deliver();
  const answers = await heartbeat;
  assert.equal(answers[1]!.kind, "queued");
  // The renewals of the other claim keep their common lease alive. Only the own process could end
  // the grant.
  await sleep(FORGOTTEN_MS);
  assert.equal(await renew(), "renewed");
  const next = await other.tryAcquire(claim("first"), now());
  assert.equal(next.kind, "busy", "nobody else holds what the waiter was granted");
  return answers[0]!;
}

describe("late heartbeats on etcd", { concurrency: 3 }, () => {
  it("a heartbeat answered after the push of the same grant leaves the grant alone", async () => {
    const answer = await heartbeatWithSlowReading("own");
    assert.equal(answer.kind, "granted", "the waiter holds by the time its heartbeat is answered");
  });

  it("a heartbeat that waits for another resource's answer leaves a grant alone", async () => {
    const answer = await heartbeatWithSlowReading("other");
    assert.notEqual(answer.kind, "unknown");
  });

  it("a waiter keeps its place although the answer to its enqueue took longer than a waiter is kept", async () => {
    await using server = await startEtcd();
    await using relay = await new HoldingRelay(server.port).start();
    await using etcd = new EtcdTestServer(server);
    const [engine, other] = [etcd.engine({ endpoints: [relay.endpoint] }), etcd.engine()];
    assert.equal((await other.tryAcquire(claim("first"), now())).kind, "granted");
    // The leases exist already, so that nothing else takes time.
    const before = claim("other");
    await other.tryAcquire(claim("other"), now());
    assert.equal((await engine.queue!.enqueue(before, now())).kind, "queued");
    const waiter = claim("first");
    relay.holdAnswers(putOf("holdfast/first/"));
    const enqueued = engine.queue!.enqueue(waiter, now(20_000));
    await until("it was sent", () => relay.held > 0);
    for (let i = 0; i < 4; i++) {
      await sleep(900);
      await engine.queue!.heartbeat([before], now());
    }
    relay.deliver();
    assert.equal((await enqueued).kind, "queued");
    await sleep(700);
    const [beat] = await engine.queue!.heartbeat([waiter], now());
    assert.equal(beat!.kind, "queued");
  });
});
