// Other programs use a key again (Go's concurrency.Mutex has one key for each session).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdClient } from "../../client/client.js";
import { Watches } from "../../notifications/watches.js";
import { resolveEtcd } from "../../options.js";
import { Keys } from "../../queue/keys.js";
import { Ground } from "../support/test-server.fixture.js";

/** Long enough for a wrong end to show; no right one is awaited by it. */
const AWHILE_MS = 300;
const room = new Keys("").room("lock");
const key = `${room.start}694d`;
let server: EtcdServer;
let ground: Ground;

before(async () => {
  server = await startEtcd();
  ground = new Ground(server);
});

after(async () => {
  await ground[Symbol.asyncDispose]();
  await server.stop();
});

/** The key is there; gives its creation. */
async function lock(): Promise<bigint> {
  await ground.ctl("put", key, "");
  const json = await ground.ctl("get", key, "-w", "json");
  return BigInt(/"create_revision":(\d+)/.exec(json)![1]!);
}

function watching(created: bigint) {
  const client = new EtcdClient(resolveEtcd({ endpoints: ground.endpoints }));
  const watches = new Watches(client);
  let ends = 0;
  watches.add({ room, key, created, onEnd: () => ends++ });
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
  // As on a member that lags: the waiter knows the second life of the key, the member its first one.
  using watch = watching(first + 2n);
  await sleep(AWHILE_MS);
  await ground.ctl("del", key);
  assert.equal(await lock(), first + 2n);
  await sleep(AWHILE_MS);
  assert.equal(watch.ends(), 0);
  await ground.ctl("del", key);
  await until("its end is told", () => watch.ends() === 1);
});

test("a key that was created again before the watch stood has ended", async () => {
  const first = await lock();
  await ground.ctl("del", key);
  assert.ok((await lock()) > first);
  using watch = watching(first);
  await until("its end is told", () => watch.ends() === 1);
});
