// The next waiter takes over without asking the server, unless it has a reason to ask.
import assert from "node:assert/strict";
import { createConnection, createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { markerName } from "../../layout.js";
import { writeRecord } from "../../node-record.js";
import { hashOf } from "../../paths.js";
import { create, remove, setData } from "../../wire/operations.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

const NOTHING = Buffer.alloc(0);
/** Long enough for a wrong grant to show. No test waits for a right one by this. */
const SETTLE_MS = 300;

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

/** A node that was made by hand holds, and a claim of this engine is the next in the queue. */
async function nextInQueue(engine: Engine, held: Partial<Claim> = {}) {
  const resource = fresh();
  const resourcePath = `/holdfast/${resource}`;
  const holder = claim(resource, held);
  await zookeeper.ask(create("/holdfast", NOTHING, "container", "open"));
  await zookeeper.ask(create(resourcePath, NOTHING, "container", "open"));
  const node = `${resourcePath}/x-${hashOf(holder.grantId)}-`;
  const first = await zookeeper.ask(
    create(node, writeRecord(holder, 10_000), "sequential", "open"),
  );
  const waiter = claim(resource);
  const pushed: string[] = [];
  engine.queue!.onGrant(({ grantId }) => pushed.push(grantId));
  assert.equal((await engine.queue!.enqueue(waiter, now())).kind, "queued");
  const pathOf = async ({ grantId }: Claim) => {
    const own = (await zookeeper.children(resourcePath)).find((name) =>
      name.includes(hashOf(grantId)),
    );
    return `${resourcePath}/${own}`;
  };
  return { resourcePath, resource, holder, waiter, pushed, first: first!.path, pathOf };
}

test("the next waiter is granted by the event that the holder left, and sends no request", async () => {
  const relay = await recordingRelay(zookeeper.server.port);
  const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
  const { first, pushed, waiter } = await nextInQueue(engine);
  relay.asked.length = 0;
  await zookeeper.ask(remove(first));
  await until("the push has come", () => pushed.length === 1);
  // The session's keepalive may fall into this moment.
  assert.deepEqual(
    relay.asked.filter((opcode) => opcode !== SYNC),
    [],
  );
  const [renewed] = await engine.renew([{ ...waiter, ttlMs: 10_000 }], now());
  assert.equal(renewed!.kind, "renewed");
  relay.close();
});

test("a waiter whose own node was deleted first is not granted", async () => {
  const engine = zookeeper.engine();
  const { first, pushed, waiter, pathOf } = await nextInQueue(engine);
  await zookeeper.ask(remove(await pathOf(waiter)));
  await zookeeper.ask(remove(first));
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  assert.equal((await engine.queue!.heartbeat([waiter], now()))[0]!.kind, "unknown");
});

test("a waiter that was cut off while the holder left asks for its place", async () => {
  const relay = await zookeeper.relay();
  const engine = zookeeper.engine({ hosts: `127.0.0.1:${relay.port}` });
  const { first, pushed, waiter, pathOf } = await nextInQueue(engine);
  const own = await pathOf(waiter);
  relay.cut();
  // It will hear of both deletions, and of the second one first.
  await zookeeper.ask(remove(own));
  await zookeeper.ask(remove(first));
  relay.mend();
  const gone = async () =>
    (await engine.queue!.heartbeat([waiter], now()).catch(() => []))[0]?.kind === "unknown";
  await until("its place is lost", gone);
  assert.deepEqual(pushed, []);
});

test("a lock-delay is kept even if its marker came after the queue was read", async () => {
  const engine = zookeeper.engine();
  const lockDelayMs = 60_000;
  const { resourcePath, first, pushed, holder, waiter } = await nextInQueue(engine, {
    lockDelayMs,
  });
  const marked = { hash: hashOf(holder.grantId), czxid: 1n, number: Number(first.slice(-10)) };
  const marker = `${resourcePath}/${markerName(lockDelayMs, marked)}`;
  await zookeeper.ask(create(marker, NOTHING, "persistent", "open"));
  await zookeeper.ask(remove(first));
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  assert.equal((await engine.queue!.heartbeat([waiter], now()))[0]!.kind, "queued");
});

test("a revocation of the holder does not grant the next waiter", async () => {
  const engine = zookeeper.engine();
  const { first, pushed } = await nextInQueue(engine);
  await zookeeper.ask(setData(first, Buffer.from('{"revoked":true}')));
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  await zookeeper.ask(remove(first));
  await until("the push has come when the holder leaves", () => pushed.length === 1);
});

test("a waiter whose predecessor withdraws is not granted while another holds", async () => {
  const engine = zookeeper.engine();
  const { resource, first, pushed, waiter } = await nextInQueue(engine);
  const last = claim(resource);
  assert.equal((await engine.queue!.enqueue(last, now())).kind, "queued");
  assert.deepEqual(await engine.queue!.withdraw(waiter, now()), { kind: "withdrawn" });
  await sleep(SETTLE_MS);
  assert.deepEqual(pushed, []);
  await zookeeper.ask(remove(first));
  await until("the push has come when the holder leaves", () => pushed.length === 1);
  assert.deepEqual(pushed, [last.grantId]);
});

const SYNC = 9;

/** A relay that records the opcodes of requests. */
async function recordingRelay(target: number) {
  const asked: number[] = [];
  const server = createServer((client) => {
    const upstream = createConnection(target, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {});
    let unread = NOTHING;
    let greeted = false;
    client.on("data", (bytes) => {
      upstream.write(bytes);
      unread = Buffer.concat([unread, bytes]);
      while (unread.length >= 4 && unread.length >= 4 + unread.readInt32BE(0)) {
        // The first packet is a greeting and has no number.
        if (greeted) asked.push(unread.readInt32BE(8));
        greeted = true;
        unread = unread.subarray(4 + unread.readInt32BE(0));
      }
    });
    upstream.on("data", (bytes) => client.write(bytes));
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  server.unref();
  const { port } = server.address() as { port: number };
  return { port, asked, close: () => server.close() };
}
