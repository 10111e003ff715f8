// Lost answers, events that come twice, and sessions that end while their claims wait.
import assert from "node:assert/strict";
import { createConnection, createServer } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

describe("schedules", { concurrency: 4 }, () => {
  for (const lockDelayMs of [0, 60_000]) {
    it(`a release whose answer is lost answers released, with a lock-delay of ${lockDelayMs}`, async () => {
      const resource = fresh();
      const relay = await zookeeper.relay();
      const [ours, other] = [
        zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` }),
        zookeeper.locks(),
      ];
      const lease = await ours.acquire(resource, { ttlMs: 20_000, lockDelayMs });
      relay.mute();
      const released = lease.release();
      const gone = async () => (await zookeeper.children(`/holdfast/${resource}`)).length === 0;
      await until("the node is gone", gone);
      relay.cut();
      relay.mend();
      assert.equal(await released, "released");
      const next = await other.tryAcquire(resource);
      assert.ok(next !== null && next.token > lease.token);
      assert.equal((await other.inspect(resource)).closedMs, 0);
    });
  }

  it("a repeated release does not end the grant of a successor", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const [ours, other] = [
      zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` }),
      zookeeper.locks(),
    ];
    const lease = await ours.acquire(resource, { ttlMs: 20_000 });
    const waiting = other.acquire(resource, { ttlMs: 20_000 });
    await zookeeper.untilWaiters(other, resource, 1);
    relay.mute();
    const released = lease.release();
    const next = await waiting;
    relay.cut();
    relay.mend();
    assert.equal(await released, "released");
    await next.renew();
    assert.equal(next.held, true);
    const nodes = (await zookeeper.children(`/holdfast/${resource}`)).filter((name) =>
      name.startsWith("x-"),
    );
    assert.equal(nodes.length, 1);
  });

  it("a waiter is granted once when its events come twice", async () => {
    const resource = fresh();
    const echo = await echoOfEvents(zookeeper.server.port);
    const [holder, engine] = [
      zookeeper.engine(),
      zookeeper.engine({ hosts: `127.0.0.1:${echo.port}` }),
    ];
    const held = claim(resource);
    const queue = [claim(resource), claim(resource)];
    await holder.tryAcquire(held, now());
    const pushed: string[] = [];
    engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
    for (const one of queue) await engine.queue!.enqueue(one, now());
    await holder.release([{ ...held, tombstoneMs: 0 }], now());
    await until("the first push has come", () => pushed.length > 0 && echo.doubled() > 0);
    await sleep(200);
    assert.deepEqual(pushed, [queue[0]!.grantId]);
    await engine.release([{ ...queue[0]!, tombstoneMs: 0 }], now());
    await until("the second push has come", () => pushed.length > 1);
    await sleep(200);
    assert.deepEqual(pushed, [queue[0]!.grantId, queue[1]!.grantId]);
    echo.close();
  });

  it("a waiter whose session ended enters the queue again, behind the waiters that came since", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const [holder, next] = [zookeeper.locks(), zookeeper.locks()];
    const late = zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` });
    const lease = await holder.acquire(resource, { ttlMs: 20_000 });
    const order: string[] = [];
    const options = { ttlMs: 1_000, waitMs: 30_000, retry: Array(100).fill(50) };
    const coming = late.acquire(resource, options).then((one) => {
      order.push("late");
      return one;
    });
    await zookeeper.untilWaiters(holder, resource, 1);
    // Connections stay open, and nothing passes until the session is over.
    relay.hang();
    await zookeeper.untilWaiters(holder, resource, 0);
    const acquiring = next.acquire(resource, { ttlMs: 20_000 });
    await zookeeper.untilWaiters(holder, resource, 1);
    await lease.release();
    const second = await acquiring;
    relay.mend();
    await zookeeper.untilWaiters(holder, resource, 1);
    assert.deepEqual([order, second.held], [[], true]);
    await second.release();
    const last = await coming;
    assert.ok(last.held && last.token > second.token);
  });
});

/** A relay that passes every event twice. */
async function echoOfEvents(target: number) {
  let doubled = 0;
  const server = createServer((client) => {
    const upstream = createConnection(target, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("data", (bytes) => upstream.write(bytes));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    let unread: Buffer = Buffer.alloc(0);
    let greeted = false;
    upstream.on("data", (bytes: Buffer) => {
      unread = Buffer.concat([unread, bytes]);
      while (unread.length >= 4 && unread.length >= 4 + unread.readInt32BE(0)) {
        const packet = unread.subarray(0, 4 + unread.readInt32BE(0));
        const isEvent = greeted && packet.readInt32BE(4) === -1;
        // The first packet is a greeting and has no number.
        greeted = true;
        client.write(packet);
        if (isEvent) client.write(packet);
        if (isEvent) doubled++;
        unread = unread.subarray(packet.length);
      }
    });
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  server.unref();
  const { port } = server.address() as { port: number };
  return { port, doubled: () => doubled, close: () => server.close() };
}
