// Other programs use a key again: Go's concurrency.Mutex has one key for each session.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdClient } from "../../client/client.js";
import { Watches } from "../../notifications/watches.js";
import { resolveEtcd } from "../../options.js";
import { Keys } from "../../queue/keys.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** Long enough for a wrong end to show. No test waits for a right one by this. */
const SETTLE_MS = 300;
const keyRange = new Keys("").rangeOf("lock");
const key = `${keyRange.start}694d`;
let server: EtcdServer;
let etcd: EtcdTestServer;

before(async () => {
  server = await startEtcd();
  etcd = new EtcdTestServer(server);
});

after(async () => {
  await etcd[Symbol.asyncDispose]();
  await server.stop();
});

/** Creates the key, and returns its create revision. */
async function lock(): Promise<bigint> {
  await etcd.ctl("put", key, "");
  const json = await etcd.ctl("get", key, "-w", "json");
  return BigInt(/"create_revision":(\d+)/.exec(json)![1]!);
}

function watching(created: bigint) {
  const client = new EtcdClient(resolveEtcd({ endpoints: etcd.endpoints }));
  const watches = new Watches(client);
  let ends = 0;
  watches.add({ keyRange, key, created, onEnd: () => ends++ });
  return {
    ends: () => ends,
    [Symbol.dispose]: () => {
      watches.close();
      client.close();
    },
  };
}

test("a deletion from before the key was created again is not the key's end", async () => {
  const first = await lock();
  // As on a member that lags: the waiter waits for the second creation, and the member has the
  // first.
  using watch = watching(first + 2n);
  await sleep(SETTLE_MS);
  await etcd.ctl("del", key);
  assert.equal(await lock(), first + 2n);
  await sleep(SETTLE_MS);
  assert.equal(watch.ends(), 0);
  await etcd.ctl("del", key);
  await until("the end of the key is reported", () => watch.ends() === 1);
});

test("a key that was created again before the watch was open counts as ended", async () => {
  const first = await lock();
  await etcd.ctl("del", key);
  assert.ok((await lock()) > first);
  using watch = watching(first);
  await until("the end of the key is reported", () => watch.ends() === 1);
});
