// A claim whose answer was lost is sent again with the same grantId, sometimes in a new session.
// The marker of its first grant, which was lost, must not be mistaken for the marker of the second
// grant.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

async function granted(engine: Engine, one: Claim): Promise<void> {
  const see = async () => (await engine.tryAcquire(one, now())).kind === "granted";
  await until("granted", see);
}

/** A grant of a process that is cut off until its session is over. */
async function lose(one: Claim): Promise<void> {
  const relay = await zookeeper.relay();
  const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
  await granted(engine, one);
  relay.cut();
  const nodes = async () =>
    (await zookeeper.children(`/holdfast/${one.resource}`)).filter((name) => /^x-/.test(name));
  await until("its session is over", async () => (await nodes()).length === 0);
}

describe("lock-delays of claims that are repeated", { concurrency: 4 }, () => {
  it("a late write to the marker of the first grant does not start the delay of the second grant", async () => {
    const resource = fresh();
    const lockDelayMs = 4_000;
    const one = claim(resource, { ttlMs: 1_000, lockDelayMs });
    const watched = await HoldingRelay.start(zookeeper.server.port);
    const observer = zookeeper.engine({ hosts: watched.hosts });
    await observer.inspect(fresh(), now());
    await lose(one);
    // A client sees that the holder is gone. Its write of the time is held back.
    watched.holdNext("write");
    const seen = observer.inspect(resource, now(20_000));
    await until("the note is held back", () => watched.holds);
    const other = claim(resource);
    const [next, again, last] = [zookeeper.engine(), zookeeper.engine(), zookeeper.engine()];
    await granted(next, other);
    await next.release([{ ...other, tombstoneMs: 0 }], now());
    // The repeated claim is granted again, and is lost again after that write arrived.
    const relay = await zookeeper.relay();
    const repeated = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
    await granted(repeated, one);
    watched.deliver();
    await seen;
    await sleep(lockDelayMs);
    // This client must ask while the second delay lasts, so it connects before.
    await last.inspect(fresh(), now());
    relay.cut();
    const holders = async () => (await again.inspect(resource, now())).holders.length;
    await until("its session is over", async () => (await holders()) === 0);
    assert.equal(
      (await last.tryAcquire(claim(resource), now())).kind,
      "busy",
      "closed for a while",
    );
    await watched[Symbol.asyncDispose]();
  });

  it("a repeated claim behind a waiter does not end the lock-delay for that waiter", async () => {
    const resource = fresh();
    const one = claim(resource, { ttlMs: 1_000, lockDelayMs: 60_000 });
    const [waiting, again] = [zookeeper.engine(), zookeeper.engine()];
    await lose(one);
    const waiter = claim(resource);
    assert.equal((await waiting.queue!.enqueue(waiter, now())).kind, "queued");
    await again.queue!.enqueue(one, now());
    const [answer] = await waiting.queue!.heartbeat([waiter], now());
    assert.equal(answer!.kind, "queued", "the first grant's lock-delay is not over");
  });
});
