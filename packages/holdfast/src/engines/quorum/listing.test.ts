import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay } from "@holdfast/servers";
import { Locks } from "../../locks.js";
import { TestQuorum } from "./test/support/test-quorum.fixture.js";

const TTL_MS = 60_000;

// A grant on two nodes of three, of which the first is emptied: the second has never heard of it.
test("a list shows what inspect shows while a node is in quarantine", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: TTL_MS });
  await using relay = await Relay.start(quorum.servers[1]!.port);
  relay.cut();
  const ports = [quorum.servers[0]!.port, relay.port, quorum.servers[2]!.port];
  const holder = new Locks(
    await quorum.engine(
      {},
      ports.map((port) => quorum.connect(port)),
    ),
  );
  const lease = await holder.acquire("left");
  const onlooker = await quorum.locks();
  await quorum.admins[0]!.flushall();
  const { holders } = await onlooker.inspect("left");
  assert.deepEqual(
    holders.map(({ token }) => token),
    [lease.token],
  );
  const listed: string[] = [];
  for await (const { resource } of onlooker.list()) listed.push(resource);
  assert.deepEqual(listed, ["left"]);
  await holder.close();
});

test("a list that would have gaps is an error", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: TTL_MS });
  const locks = await quorum.locks();
  await locks.acquire("a");
  await quorum.admins[0]!.flushall();
  await quorum.admins[2]!.flushall();
  const listing = async () => {
    for await (const { resource } of locks.list()) assert.equal(resource, "a");
  };
  await assert.rejects(listing(), { code: "ENGINE", message: /quarantine/ });
});
