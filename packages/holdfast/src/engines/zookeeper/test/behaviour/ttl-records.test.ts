import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { zookeeperEngine } from "../../index.js";
import { create, remove } from "../../wire/operations.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

const ttl = { hold: "ttl" } as const;

describe("records with a ttl", { concurrency: 4 }, () => {
  it("a dead holder's grant ends when an observer has seen it unchanged for its ttl, and not earlier", async () => {
    const resource = fresh();
    const [holder, observer] = [zookeeper.engine(ttl), zookeeper.engine(ttl)];
    const held = claim(resource, { ttlMs: 800 });
    await holder.tryAcquire(held, now());
    await holder.close();
    await sleep(600);
    // The observer does not know how old the grant is, so it waits for the whole ttl.
    const firstLookAt = performance.now();
    const next = claim(resource);
    await until("granted", async () => (await observer.tryAcquire(next, now())).kind === "granted");
    const tookMs = performance.now() - firstLookAt;
    assert.ok(tookMs >= 795, `granted after ${tookMs} ms`);
  });

  it("a grant that is renewed never ends, however long an observer looks at it", async () => {
    const resource = fresh();
    const [ours, observer] = [zookeeper.locks(ttl), zookeeper.engine(ttl)];
    const lease = await ours.acquire(resource, { ttlMs: 6_000 });
    const end = performance.now() + 9_000;
    while (performance.now() < end) {
      const { kind } = await observer.tryAcquire(claim(resource), now());
      assert.equal(kind, "busy", lease.held ? "two hold it" : "it was not renewed in time");
      await sleep(10);
    }
    assert.ok(lease.held);
    await lease.release();
  });

  it("an observer whose wall clock is wrong by a day ends no grant", async () => {
    const resource = fresh();
    const [ours, observer] = [zookeeper.locks(ttl), zookeeper.engine(ttl)];
    const lease = await ours.acquire(resource, { ttlMs: 5_000 });
    const rightNow = Date.now;
    try {
      for (const offsetMs of [-86_400_000, 86_400_000]) {
        Date.now = () => rightNow() + offsetMs;
        assert.equal((await observer.tryAcquire(claim(resource), now())).kind, "busy");
        assert.ok(lease.held);
      }
    } finally {
      Date.now = rightNow;
    }
    await lease.release();
  });

  it("a grant outlives its session and a restart of the server", async () => {
    await using own = await ZookeeperTestServer.start();
    const relay = await own.relay();
    const locks = own.locks({ ...ttl, hosts: `127.0.0.1:${relay.port}` });
    const lease = await locks.acquire("a", { ttlMs: 20_000 });
    relay.cut();
    await own.server.restart();
    relay.mend();
    await until("renewed", () =>
      lease.renew().then(
        () => true,
        () => false,
      ),
    );
    assert.equal(await lease.release(), "released");
  });

  it("a released grant leaves no node", async () => {
    const resource = fresh();
    const locks = zookeeper.locks(ttl);
    const lease = await locks.acquire(resource);
    assert.deepEqual(
      await zookeeper.children("/holdfast-ttl").then((c) => c.includes(resource)),
      true,
    );
    await lease.release();
    assert.equal((await zookeeper.children("/holdfast-ttl")).includes(resource), false);
  });

  it("a record has one child, with another name each time the record is made", async () => {
    const resource = fresh();
    const engine = zookeeper.engine(ttl);
    const one = claim(resource);
    const names: string[] = [];
    for (let times = 0; times < 3; times++) {
      // The same grantId each time: the name of the child does not depend on it.
      await engine.tryAcquire(one, now());
      const [nonce, ...others] = await zookeeper.children(`/holdfast-ttl/${resource}`);
      assert.match(nonce!, /^[0-9a-f]{32}$/);
      assert.deepEqual(others, []);
      names.push(nonce!);
      await engine.release([{ ...one, tombstoneMs: 0 }], now());
    }
    assert.equal(new Set(names).size, 3);
  });

  it("a record without its child is refused until somebody deletes it", async () => {
    const resource = fresh();
    const path = `/holdfast-ttl/${resource}`;
    const [ours, other] = [zookeeper.locks(ttl), zookeeper.locks(ttl)];
    const lease = await ours.acquire(resource);
    await zookeeper.deleteChildren(path);
    await assert.rejects(lease.renew(), /somebody deleted a child of .*: delete it too/);
    await zookeeper.ask(remove(path));
    assert.ok((await other.acquire(resource)).token > lease.token);
    assert.equal(await lease.release(), "gone");
  });

  it("a node that holds something else is refused, and other locks go on", async () => {
    const locks = zookeeper.locks(ttl);
    await (await locks.acquire("first")).release();
    const resource = fresh();
    const keep = await locks.acquire(fresh());
    for (const content of ["hi", "", "null", '{"grants":{},"graves":{}}']) {
      const path = `/holdfast-ttl/${resource}`;
      await zookeeper.ask(create(path, Buffer.from(content), "persistent", "open"));
      await assert.rejects(locks.acquire(resource), /not a lock/, content);
      await zookeeper.ask(remove(path));
    }
    assert.equal(await keep.release(), "released");
  });

  it("the layout of another library is refused with hold ttl", () => {
    const options = { hosts: "h", layout: "kazoo", ...ttl } as const;
    assert.throws(() => zookeeperEngine(options), UsageError);
    assert.throws(() => zookeeperEngine({ hosts: "h", hold: "for ever" as "ttl" }), UsageError);
  });
});

describe("records with a ttl, while no other test asks the server", () => {
  it("many updates of one record by one process are written together", async () => {
    const resource = fresh();
    const engine = zookeeper.engine(ttl);
    const claims = Array.from({ length: 50 }, () => claim(resource, { mode: "shared" }));
    const answers = await Promise.all(claims.map((one) => engine.tryAcquire(one, now())));
    const tokens = answers.map((answer) => (answer.kind === "granted" ? answer.token : 0n));
    assert.equal(new Set(tokens).size, 50, "each has a token of its own");
    const before = await zookeeper.server.metric("zk_packets_received");
    const renewed = await engine.renew(claims, now());
    assert.ok(renewed.every(({ kind }) => kind === "renewed"));
    const requests = (await zookeeper.server.metric("zk_packets_received")) - before;
    // One by one they would be at least 100: a read and a write each. Keepalives count too.
    assert.ok(requests < 50, `${requests} requests for 50 renewals`);
    await engine.release(
      claims.map((one) => ({ ...one, tombstoneMs: 0 })),
      now(),
    );
  });
});
