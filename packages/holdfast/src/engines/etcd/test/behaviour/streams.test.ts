// Streams of watches whose other end cannot report anything any more.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd, startEtcdCluster } from "@holdfast/servers";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdClient } from "../../client/client.js";
import { toBase64 } from "../../client/requests.js";
import { creation } from "../../notifications/watches.js";
import { resolveEtcd } from "../../options.js";
import { GarblingRelay } from "../support/garbling-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** The next renewal is 20 s away. A loss that is reported long before came by the stream. */
const TTL_MS = 60_000;
const SOON_MS = 12_000;

test("a holder whose member was killed hears of a revocation from another member, without a call", async () => {
  await using cluster = await startEtcdCluster();
  await using etcd = new EtcdTestServer(...cluster.members);
  const lease = await etcd.locks().acquire("a", { ttlMs: TTL_MS });
  await sleep(300);
  await cluster.members[0]!.kill();
  await cluster.leader();
  const rest = new EtcdTestServer(...cluster.members.slice(1));
  await rest.revoke(await rest.leaseOf("a"));
  const lost = lossOf(lease);
  assert.equal(await Promise.race([lost, sleep(SOON_MS, "nothing", { ref: false })]), "expired");
});

test("a watch ends at a member that has no leader, and at a member that hangs", async () => {
  await using cluster = await startEtcdCluster();
  const [first, ...others] = cluster.members;
  const watch = (port: number, withinMs: number) => {
    const client = new EtcdClient(resolveEtcd({ endpoints: [`127.0.0.1:${port}`] }));
    const ended = new Promise<string>((onEnd) => {
      const body = creation({ key: toBase64("holdfast/any") });
      client.stream(
        body,
        () => {},
        () => onEnd("ended"),
      );
    });
    return Promise.race([ended, sleep(withinMs, "open", { ref: false })]).finally(() =>
      client.close(),
    );
  };
  try {
    const ends = watch(first!.port, 60_000);
    for (const member of others) member.pause();
    assert.equal(await watch(others[0]!.port, 20_000), "ended", "a member that hangs");
    assert.equal(await ends, "ended", "a member without a leader");
  } finally {
    for (const member of others) member.resume();
  }
});

test("a stream with malformed messages is opened again, and nothing fails", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await using relay = await new GarblingRelay(server.port).start();
  const locks = etcd.locks({ endpoints: [relay.endpoint] });
  const lease = await locks.acquire("a", { ttlMs: TTL_MS });
  const header = '"header":{"cluster_id":"1","member_id":"1","revision":"1","raft_term":"1"}';
  for (const events of ['"x"', "[7]", '[{"kv":{"key":7}}]', '[{"type":"NEW","kv":{}}]']) {
    await sleep(300);
    relay.streamWith(`{"result":{${header},"events":${events}}}\n`);
    // Only messages are garbled, so the test causes one.
    await etcd.ctl("put", "holdfast/%note/none", "");
    await (await locks.acquire("b", { ttlMs: 2 * TTL_MS })).release();
    await sleep(300);
    relay.streamWith(null);
  }
  await sleep(500);
  await etcd.revoke(await etcd.leaseOf("a"));
  const lost = lossOf(lease);
  assert.equal(await Promise.race([lost, sleep(SOON_MS, "nothing", { ref: false })]), "expired");
});

test("a stream that is refused is not opened again without a pause", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await etcd.ctl("user", "add", "root:secret");
  await etcd.ctl("user", "grant-role", "root", "root");
  await etcd.ctl("auth", "enable");
  const locks = etcd.locks({ username: "root", password: "secret" });
  const lease = await locks.acquire("a", { ttlMs: TTL_MS });
  await sleep(300);
  // The server keeps tokens in memory only.
  await server.restart();
  await sleep(2_000);
  const tries = await etcd.calls("Watch");
  assert.ok(tries >= 1 && tries <= 10, `${tries} streams in two seconds`);
  assert.equal(lease.held, true);
  const options = { username: "root", password: "secret" };
  const revoked = once(lease.signal, "abort");
  await etcd.locks(options).revoke("a", { token: lease.token });
  assert.notEqual(
    await Promise.race([revoked, sleep(SOON_MS, "nothing", { ref: false })]),
    "nothing",
  );
  await until("it is lost", () => !lease.held);
});
