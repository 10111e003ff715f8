// The client with a real server, and with servers that are broken on purpose.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ensure, startZooKeeper } from "@holdfast/servers";
import { systemClock } from "../../../../core/runtime/clock.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { CODES } from "../../wire/codes.js";
import { JuteReader, JuteWriter } from "../../wire/jute.js";
import { failedPart, multi } from "../../wire/multi.js";
import {
  check,
  create,
  exists,
  getChildren,
  getData,
  remove,
  setData,
  sync,
} from "../../wire/operations.js";
import { Proof, timeoutFor } from "../../wire/proof.js";
import type { Session } from "../../wire/session.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;
const EMPTY = Buffer.alloc(0);

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

const ask = <T>(
  session: Session,
  operation: Parameters<Session["ask"]>[0] & { read(f: JuteReader): T },
) => session.ask(operation, systemClock.now() + 5_000);

test("the reader reads fields as they were written, and nothing beyond the packet", () => {
  const bytes = new JuteWriter()
    .int(-7)
    .long(-(2n ** 63n))
    .bool(true)
    .string("锁🔒")
    .strings(["a", ""])
    .buffer(Buffer.alloc(1_000, 3))
    .packet();
  assert.equal(bytes.readInt32BE(0), bytes.length - 4);
  const from = new JuteReader(bytes.subarray(4));
  assert.deepEqual([from.int(), from.long(), from.bool()], [-7, -(2n ** 63n), true]);
  assert.deepEqual([from.string(), from.strings()], ["锁🔒", ["a", ""]]);
  assert.equal(from.buffer().length, 1_000);
  assert.equal(from.left, 0);
  assert.throws(() => from.int(), RangeError);
  for (const lie of [-2, 1_000_000, 2 ** 31 - 1]) {
    const short = new JuteWriter().int(lie).packet().subarray(4);
    assert.throws(() => new JuteReader(short).buffer(), RangeError);
    assert.throws(() => new JuteReader(short).strings(), RangeError);
  }
});

test("each operation has its effect, and Python's kazoo sees the same", async () => {
  const session = zookeeper.session();
  const root = `/${fresh("ops")}`;
  const made = await ask(session, create(root, Buffer.from("one"), "persistent", "open"));
  assert.equal(made.value?.path, root);
  assert.ok(made.value.stat.czxid > 0n);
  assert.equal(
    (await ask(session, create(root, EMPTY, "persistent", "open"))).err,
    CODES.nodeExists,
  );
  const changed = await ask(session, setData(root, Buffer.from("two"), 0));
  assert.equal(changed.value?.version, 1);
  assert.equal((await ask(session, setData(root, EMPTY, 0))).err, CODES.badVersion);
  const own = await ask(session, create(`${root}/e-`, Buffer.from("mine"), "sequential", "open"));
  assert.match(own.value!.path, /\/e-0000000000$/);
  assert.equal((await ask(session, exists(own.value!.path))).value?.ephemeralOwner !== 0n, true);
  await ask(session, create(`${root}/c`, EMPTY, "container", "open"));
  assert.equal((await ask(session, sync(root))).value, root);
  const seen = kazoo(
    `print(zk.get("${root}")[0].decode(), sorted(zk.get_children("${root}")), zk.get("${own.value!.path}")[0].decode())`,
  );
  assert.equal(seen, "two ['c', 'e-0000000000'] mine");
  kazoo(`zk.set("${root}", b"three"); zk.create("${root}/k", b"by kazoo")`);
  const { value } = await ask(session, getData(root));
  assert.equal(value?.data.toString(), "three");
  const names = (await ask(session, getChildren(root))).value?.names.sort();
  assert.deepEqual(names, ["c", "e-0000000000", "k"]);
  assert.equal((await ask(session, remove(`${root}/nobody`))).err, CODES.noNode);
});

test("a multi runs whole or not at all, and says which part failed", async () => {
  const session = zookeeper.session();
  const root = `/${fresh("multi")}`;
  await ask(session, create(root, EMPTY, "persistent", "open"));
  const good = await ask(
    session,
    multi([check(root), create(`${root}/a`, EMPTY, "persistent", "open"), setData(root, EMPTY)]),
  );
  assert.equal(failedPart(good.value!), null);
  const bad = await ask(session, multi([remove(`${root}/a`), remove(`${root}/b`), check(root)]));
  assert.deepEqual(failedPart(bad.value!), { at: 1, err: CODES.noNode });
  assert.equal((await ask(session, exists(`${root}/a`))).err, CODES.ok, "the first was undone");
});

test("the nodes of the engine are readable for other programs, and contain no grantId", async () => {
  const resource = fresh();
  const engine = zookeeper.engine();
  const held = claim(resource, { label: "o'brien 锁", mode: "shared", limit: 3, tokens: 5 });
  await engine.tryAcquire(held, now());
  const seen = kazoo(`
import json
path = "/holdfast/${resource}"
name = zk.get_children(path)[0]
data, stat = zk.get(path + "/" + name)
print(json.dumps([name, json.loads(data), stat.ephemeralOwner != 0]))`);
  const [name, data, ephemeral] = JSON.parse(seen);
  assert.match(name, /^s3-[0-9a-f]{32}-\d{10}$/);
  assert.ok(!seen.includes(held.grantId));
  const { label, mode, limit, tokens, ttlMs, lockDelayMs } = held;
  assert.deepEqual(data, { mode, limit, tokens, ttlMs, lockDelayMs, label });
  assert.equal(ephemeral, true);
});

test("a session outlives its connection, and hears of changes in between", async () => {
  const relay = await zookeeper.relay();
  const session = zookeeper.session({ hosts: [{ host: "127.0.0.1", port: relay.port }] });
  const root = `/${fresh("watched")}`;
  const paths = [`${root}/changed`, `${root}/deleted`, `${root}/same`];
  await ask(session, create(root, EMPTY, "persistent", "open"));
  const heard: string[] = [];
  for (const path of paths) {
    await ask(session, create(path, EMPTY, "ephemeral", "open"));
    const listener = () => heard.push(path);
    await session.watch(path, systemClock.now() + 5_000, listener);
  }
  relay.cut();
  await zookeeper.ask(setData(paths[0]!, Buffer.from("new")));
  await zookeeper.ask(remove(paths[1]!));
  await sleep(100);
  relay.mend();
  await until("both changes are reported", () => heard.length === 2);
  await sleep(100);
  assert.deepEqual(heard.sort(), [paths[0], paths[1]]);
  assert.equal((await ask(session, exists(paths[2]!))).err, CODES.ok, "ephemeral nodes stay");
  await zookeeper.ask(setData(paths[2]!, Buffer.from("new")));
  await until("a watch that was set again fires", () => heard.length === 3);
});

test("a server that hangs is noticed, and another one is used with the same session", async () => {
  const [first, second] = [await zookeeper.relay(), await zookeeper.relay()];
  const hosts = [first, second].map(({ port }) => ({ host: "127.0.0.1", port }));
  let ended = false;
  const session = zookeeper.session({ hosts, timeoutMs: 9_000 }, () => {
    ended = true;
  });
  const path = `/${fresh("moved")}`;
  await ask(session, create(path, EMPTY, "ephemeral", "open"));
  for (const relay of [first, second]) {
    relay.hang();
    const answered = async () => {
      const work = session.ask(exists(path), systemClock.now() + 300).catch(() => null);
      return ((await Promise.race([work, sleep(200)])) ?? null) !== null;
    };
    const tookMs = await until("an answer from the other one", answered);
    assert.ok(tookMs < 9_000, `it took ${tookMs} ms`);
    relay.mend();
  }
  assert.equal(ended, false);
  assert.equal((await ask(session, exists(path))).err, CODES.ok);
});

test("packets that arrive byte by byte are read whole", async () => {
  const relay = await dripping(zookeeper.server.port);
  const session = zookeeper.session({ hosts: [{ host: "127.0.0.1", port: portOf(relay) }] });
  const path = `/${fresh("drip")}`;
  await ask(session, create(path, Buffer.alloc(300, 7), "ephemeral", "open"));
  const { value } = await ask(session, getData(path));
  assert.deepEqual(value?.data, Buffer.alloc(300, 7));
  await session.close();
  relay.close();
});

for (const [what, nonsense] of [
  ["bytes that are no packet", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ["a negative length", Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3])],
  ["a packet too short to be a welcome", Buffer.from([0, 0, 0, 2, 0, 0])],
  ["an end", null],
] as const) {
  test(`the client goes to the next server after ${what}`, async () => {
    const broken = createServer((socket) => {
      socket.on("error", () => {});
      if (nonsense === null) socket.end();
      else socket.write(nonsense);
    });
    await new Promise<void>((go) => broken.listen(0, "127.0.0.1", go));
    const hosts = [portOf(broken), zookeeper.server.port].map((port) => ({
      host: "127.0.0.1",
      port,
    }));
    const session = zookeeper.session({ hosts });
    assert.equal((await ask(session, exists("/zookeeper"))).err, CODES.ok);
    await session.close();
    broken.close();
  });
}

test("an answer without a request ends the connection, not the session", async () => {
  const relay = await dripping(
    zookeeper.server.port,
    Buffer.from([0, 0, 0, 16, 0, 0x7f, 0, 0, ...EMPTY_HEADER]),
  );
  const session = zookeeper.session({ hosts: [{ host: "127.0.0.1", port: portOf(relay) }] });
  const path = `/${fresh("odd")}`;
  const made = () => ask(session, create(path, EMPTY, "ephemeral", "open")).catch(() => null);
  await until("a later connection works", async () => (await made()) !== null);
  assert.equal((await ask(session, exists(path))).err, CODES.ok);
  await session.close();
  relay.close();
});

test("a restarted server still knows the session", async () => {
  await using server = await startZooKeeper();
  const hosts = [{ host: "127.0.0.1", port: server.port }];
  let ended = false;
  const session = zookeeper.session({ hosts, timeoutMs: 10_000 }, () => {
    ended = true;
  });
  await ask(session, create("/kept", EMPTY, "ephemeral", "open"));
  await server.restart();
  const found = () => ask(session, exists("/kept")).catch(() => null);
  await until("the node is found again", async () => (await found())?.err === CODES.ok);
  assert.equal(ended, false);
  await session.close();
});

test("the proof counts only majority answers", () => {
  const proof = new Proof(8_000);
  assert.equal(proof.leaseMs, 6_000);
  assert.equal(timeoutFor(6_000), 8_000);
  proof.opened(0, true);
  assert.equal(proof.since, 0);
  // A follower that lost its leader still answers reads and pings.
  for (let at = 100; at <= 5_000; at += 100) proof.answered(at, at + 10, false);
  assert.equal(proof.since, 0);
  // With a keepalive every eighth of the timeout, the last answered request counts.
  for (let at = 6_000; at <= 12_000; at += 1_000) proof.answered(at, at + 5, true);
  assert.equal(proof.since, 12_000);
  // After a long silence one answer proves that the session lives, not that its time began anew.
  proof.answered(17_000, 17_005, true);
  assert.equal(proof.since, 12_000 + 2_000);
});

const EMPTY_HEADER = new Array<number>(12).fill(0);

/** Passes the bytes of the server on one by one. The first connection starts with other bytes. */
async function dripping(port: number, first?: Buffer): Promise<Server> {
  let said = first === undefined;
  const server = createServer((client: Socket) => {
    const upstream = createConnection(port, "127.0.0.1");
    client.setNoDelay(true);
    client.on("data", (bytes) => upstream.write(bytes));
    let chain = Promise.resolve();
    upstream.on("data", (bytes) => {
      chain = chain.then(async () => {
        for (let i = 0; i < bytes.length; i += 7) {
          client.write(bytes.subarray(i, i + 7));
          await sleep(1);
        }
        if (said || first === undefined) return;
        said = true;
        client.write(first);
      });
    });
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  return server;
}

function portOf(server: Server): number {
  return (server.address() as { port: number }).port;
}

function kazoo(script: string): string {
  const program = `
from kazoo.client import KazooClient
zk = KazooClient(hosts="${zookeeper.server.hosts}")
zk.start()
${script}
zk.stop()`;
  const python = ensure("kazoo");
  return execFileSync(python, ["-c", program], { encoding: "utf8" }).trim();
}
