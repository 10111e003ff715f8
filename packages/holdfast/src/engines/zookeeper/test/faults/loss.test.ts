// Losses of leases: lost connections, servers that hang, sessions that expire.
import assert from "node:assert/strict";
import { createConnection, createServer } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startZooKeeper } from "@holdfast/servers";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { remove } from "../../wire/operations.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

describe("loss", { concurrency: 4 }, () => {
  it("a holder that is cut off in silence loses its lease before the next waiter is granted", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const [ours, other] = [
      zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` }),
      zookeeper.locks(),
    ];
    const lease = await ours.acquire(resource, { ttlMs: 2_000 });
    const waiting = other.acquire(resource, { waitMs: 30_000 });
    await zookeeper.untilWaiters(other, resource, 1);
    relay.hang();
    const lost = lossOf(lease).then(() => "lost");
    const first = await Promise.race([lost, waiting.then(() => "granted")]);
    assert.equal(first, "lost");
    assert.equal(lease.held, false);
    assert.equal(await lost, "lost");
    const next = await waiting;
    assert.ok(next.token > lease.token);
    relay.mend();
  });

  it("a lease survives a lost connection that is soon replaced", async () => {
    const relay = await zookeeper.relay();
    const locks = zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` });
    const leases = await Promise.all(
      [fresh(), fresh()].map((name) => locks.acquire(name, { ttlMs: 10_000 })),
    );
    for (let cuts = 0; cuts < 3; cuts++) {
      relay.cut();
      await sleep(100);
      relay.mend();
      await sleep(600);
    }
    await Promise.all(leases.map((lease) => lease.renew()));
    assert.ok(leases.every((lease) => lease.held));
  });

  it("an expired session loses every lease that it held, and a new one is opened", async () => {
    const relay = await zookeeper.relay();
    const locks = zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` });
    const leases = await Promise.all(
      Array.from({ length: 5 }, () => locks.acquire(fresh(), { ttlMs: 1_500, graceMs: 0 })),
    );
    const longer = await locks.acquire(fresh(), { ttlMs: 20_000 });
    relay.cut();
    await sleep(2_500);
    relay.mend();
    const reasons = await Promise.all(leases.map(lossOf));
    assert.ok(reasons.every((reason) => ["unconfirmed", "expired"].includes(reason)));
    const again = await locks.acquire(leases[0]!.resource, { ttlMs: 1_500, retry: [50, 50, 50] });
    assert.ok(again.token > leases[0]!.token);
    await longer.renew();
    assert.ok(longer.held, "another ttl has another session");
  });

  it("a server that comes back empty is used again", async () => {
    const relay = await zookeeper.relay();
    const locks = zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` });
    // The client must have seen more than an empty server has.
    for (let i = 0; i < 5; i++) await (await locks.acquire(fresh(), { ttlMs: 1_000 })).release();
    const lease = await locks.acquire(fresh(), { ttlMs: 1_000 });
    await using empty = await startZooKeeper();
    relay.cut();
    relay.aim(empty.port);
    relay.mend();
    await lossOf(lease);
    const acquires = () => locks.acquire(fresh(), { ttlMs: 1_000 }).catch(() => null);
    await until("an acquire succeeds", async () => (await acquires()) !== null);
    await locks.close();
  });

  it("a lease is lost at once when its node is deleted by hand", async () => {
    const resource = fresh();
    const locks = zookeeper.locks();
    const lease = await locks.acquire(resource, { ttlMs: 60_000 });
    await sleep(300);
    const started = performance.now();
    await zookeeper.deleteChildren(`/holdfast/${resource}`);
    assert.equal(await lossOf(lease), "expired");
    assert.ok(performance.now() - started < 10_000, "long before the next renewal");
    assert.equal(await lease.release(), "gone");
  });

  it("a waiter whose node was deleted by hand enters the queue again", async () => {
    const resource = fresh();
    const [holder, locks] = [zookeeper.locks(), zookeeper.locks()];
    const lease = await holder.acquire(resource);
    const waiting = locks.acquire(resource, { waitMs: 20_000 });
    await zookeeper.untilWaiters(holder, resource, 1);
    const names = await zookeeper.children(`/holdfast/${resource}`);
    const last = names.sort((a, b) => a.slice(-10).localeCompare(b.slice(-10))).at(-1)!;
    await zookeeper.ask(remove(`/holdfast/${resource}/${last}`));
    await zookeeper.untilWaiters(holder, resource, 0);
    await zookeeper.untilWaiters(holder, resource, 1);
    await lease.release();
    assert.ok((await waiting).held);
  });

  it("a claim whose answer is lost finds its node by the name, and makes no second one", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
    await engine.inspect(resource, now());
    await engine.tryAcquire(claim(fresh(), { ttlMs: 10_000 }), now());
    relay.mute();
    const one = claim(resource, { ttlMs: 10_000 });
    const entering = engine.queue!.enqueue(one, now(30_000));
    const made = async () => (await zookeeper.children(`/holdfast/${resource}`)).length === 1;
    await until("the node is made", made);
    relay.cut();
    relay.mend();
    const granted = await entering;
    assert.equal(granted.kind, "granted");
    assert.equal((await zookeeper.children(`/holdfast/${resource}`)).length, 1);
    const [released] = await engine.release([{ ...one, tombstoneMs: 0 }], now());
    assert.equal(released!.kind, "released");
    const left = async () =>
      (await zookeeper.children(`/holdfast/${resource}`)).filter((name) => /^x-/.test(name)).length;
    assert.equal(await left(), 0, "no orphan");
  });

  it("a connection that breaks right after the node was made leaves no second one", async () => {
    const resource = fresh();
    const relay = await scissors(zookeeper.server.port);
    const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
    const terms = { ttlMs: 30_000 };
    const first = claim(resource, terms);
    await engine.tryAcquire(first, now());
    await engine.release([{ ...first, tombstoneMs: 0 }], now());
    const one = claim(resource, terms);
    // The answer to the create passes. The answer with the queue does not.
    relay.cutAfterNextPacket();
    const answer = await engine.queue!.enqueue(one, now(10_000));
    assert.equal(relay.cuts(), 1);
    assert.equal(answer.kind, "granted");
    assert.equal((await zookeeper.children(`/holdfast/${resource}`)).length, 1);
    await engine.release([{ ...one, tombstoneMs: 0 }], now());
    relay.close();
  });

  it("the node of an aborted claim blocks nobody, although its answer never came", async () => {
    const resource = fresh();
    const relay = await zookeeper.relay();
    const locks = zookeeper.locks({ hosts: `127.0.0.1:${relay.port}` });
    await locks.acquire(fresh(), { ttlMs: 4_000 });
    relay.mute();
    const options = { ttlMs: 4_000, callTimeoutMs: 400, waitMs: 600 };
    const failed = locks.acquire(resource, options).catch((error: unknown) => error);
    const made = async () => (await zookeeper.children(`/holdfast/${resource}`)).length > 0;
    await until("the node is made", made);
    assert.ok((await failed) instanceof Error);
    relay.cut();
    relay.mend();
    const other = zookeeper.locks();
    const lease = await other.acquire(resource, { waitMs: 30_000 });
    assert.ok(lease.held);
    const waiters = async () => (await other.inspect(resource)).waiters.length;
    await until("nobody else is in the queue", async () => (await waiters()) === 0);
  });
});

/** A relay that can pass one more packet of the server, and then break the connection. */
async function scissors(target: number) {
  let [armed, cuts] = [false, 0];
  const server = createServer((client) => {
    const upstream = createConnection(target, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.on("data", (bytes) => upstream.write(bytes));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    upstream.on("data", (bytes) => {
      if (!armed) {
        client.write(bytes);
        return;
      }
      armed = false;
      cuts++;
      client.end(bytes.subarray(0, 4 + bytes.readInt32BE(0)));
      upstream.destroy();
    });
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  // A test that fails before it closes the relay must still end.
  server.unref();
  return {
    port: (server.address() as { port: number }).port,
    cutAfterNextPacket: () => {
      armed = true;
    },
    cuts: () => cuts,
    close: () => server.close(),
  };
}
