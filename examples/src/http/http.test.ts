// The service of docs/http-service.md, with a real Redis and real connections.
import assert from "node:assert/strict";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "@holdfast/servers";
import { connect, type Locks } from "holdfast";
import { connectWhenThere } from "./connecting.js";
import { createService, shutDown, type Work } from "./service.js";

const NEVER_MS = 60_000;
const AT_ONCE_MS = 10_000;

let redis: RedisServer;
let other: Locks;
before(async () => {
  redis = await startRedis();
  other = await connect(redis.url, { defaults: { label: "the other host" } });
});
after(async () => {
  await other.close();
  await redis.stop();
});

interface Service extends AsyncDisposable {
  readonly server: Server;
  readonly locks: Locks;
  readonly url: string;
}

async function start(work: Work): Promise<Service> {
  const locks = await connect(redis.url, { defaults: { label: "the service" } });
  const probe = await connect(redis.url, { defaults: { callTimeoutMs: 300 } });
  const server = createService(locks, probe, work);
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  const stop = async () => {
    if (server.listening) await shutDown(server, locks, 0);
    await probe.close();
  };
  return { server, locks, url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop };
}

/** Work that ends by its signal alone, and the reasons that it was told. */
function endless(): { work: Work; begun: Promise<void>; reasons: unknown[] } {
  const reasons: unknown[] = [];
  const { promise: begun, resolve } = withResolvers();
  const work: Work = async (_name, signal) => {
    resolve();
    await sleep(NEVER_MS, undefined, { signal }).catch(() => reasons.push(signal.reason));
    signal.throwIfAborted();
  };
  return { work, begun, reasons };
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

async function soon<T>(what: Promise<T>): Promise<T> {
  const late = sleep(AT_ONCE_MS, undefined, { ref: false }).then(() => assert.fail("too late"));
  return Promise.race([what, late]);
}

test("work under the lock is answered with 200, and a busy lock with 409 and its holders", async () => {
  await using service = await start(async (name) => `worked on ${name}`);
  const first = await fetch(`${service.url}/a`);
  assert.deepEqual([first.status, await first.json()], [200, { done: "worked on /a" }]);
  await using _held = await other.acquire("http:/a");
  const second = await fetch(`${service.url}/a`);
  const { error, holders } = (await second.json()) as { error: string; holders: object[] };
  assert.deepEqual([second.status, error, holders.length], [409, "busy", 1]);
  assert.equal((holders[0] as { label: string }).label, "the other host");
});

test("a client that hangs up ends the work, and the lock is free", async () => {
  const { work, begun, reasons } = endless();
  await using service = await start(work);
  const client = new AbortController();
  const asking = fetch(`${service.url}/b`, { signal: client.signal });
  await soon(begun);
  client.abort();
  await assert.rejects(asking);
  await using _next = await soon(other.acquire("http:/b"));
  assert.equal((reasons[0] as Error).name, "AbortError");
});

test("a holder that is revoked ends its work, and the client hears of a failure", async () => {
  const { work, begun, reasons } = endless();
  await using service = await start(work);
  const asking = fetch(`${service.url}/c`);
  await soon(begun);
  const [holder] = (await other.inspect("http:/c")).holders;
  await other.revoke("http:/c", { token: holder!.token });
  assert.equal((await soon(asking)).status, 500);
  assert.equal((reasons[0] as Error).name, "LeaseLostError");
});

test("while the backend hangs, the service answers 503 soon, and is not ready", async () => {
  await using service = await start(async () => "done");
  assert.equal((await fetch(`${service.url}/ready`)).status, 200);
  redis.pause();
  try {
    for (const path of ["/ready", "/d"]) {
      const { status } = await soon(fetch(`${service.url}${path}`));
      assert.equal(status, 503, path);
    }
  } finally {
    redis.resume();
  }
  assert.equal((await soon(fetch(`${service.url}/ready`))).status, 200);
});

test("a release that hangs delays the answer by no more than callTimeoutMs", async () => {
  await using service = await start(async () => redis.pause());
  try {
    const startedAt = performance.now();
    assert.equal((await soon(fetch(`${service.url}/e`))).status, 200);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs < 2_500, `the answer took ${tookMs} ms`);
  } finally {
    redis.resume();
  }
});

test("a shutdown lets running work end, and takes no new work", async () => {
  const { promise: finishing, resolve: finish } = withResolvers();
  const { promise: begun, resolve: begin } = withResolvers();
  await using service = await start(async () => {
    begin();
    await finishing;
    return "finished";
  });
  const asking = fetch(`${service.url}/f`);
  await soon(begun);
  const down = shutDown(service.server, service.locks, NEVER_MS);
  await assert.rejects(fetch(`${service.url}/f`), "it took new work");
  finish();
  const reply = await soon(asking);
  assert.deepEqual([reply.status, await reply.json()], [200, { done: "finished" }]);
  await soon(down);
});

test("a shutdown tells work to stop when its limit is over", async () => {
  const { work, begun, reasons } = endless();
  await using service = await start(work);
  const asking = fetch(`${service.url}/g`);
  await soon(begun);
  await soon(shutDown(service.server, service.locks, 100));
  assert.equal((await asking).status, 500);
  assert.equal((reasons[0] as { reason: string }).reason, "closed");
  await using _next = await soon(other.acquire("http:/g"));
});

test("a service that starts before its backend connects when the backend is there", async () => {
  await using late = await startRedis();
  const { port } = late;
  await late.stop();
  const connecting = connectWhenThere(
    `redis://127.0.0.1:${port}`,
    {},
    new AbortController().signal,
  );
  await sleep(300);
  await using _again = await startRedis({ port });
  await using locks = await connecting;
  await using _lease = await locks.acquire("http:/h");
});

test("a service that is shut down before its backend is there stops trying", async () => {
  const down = new AbortController();
  const connecting = connectWhenThere("postgres://u@127.0.0.1:1/d", {}, down.signal);
  setTimeout(() => down.abort(), 300);
  await assert.rejects(soon(connecting), { name: "AbortError" });
});
