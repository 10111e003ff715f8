import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay } from "@holdfast/servers";
import { Locks } from "../../locks.js";
import { Ground } from "./test/support/test-server.fixture.js";

const TTL_MS = 60_000;

// A grant on two nodes of three, of which the first is emptied: the second has never heard of it.
test("a list shows what inspect shows while a node is in quarantine", async () => {
  await using ground = await Ground.start(3, { maxTtlMs: TTL_MS });
  await using relay = await Relay.start(ground.servers[1]!.port);
  relay.cut();
  const ports = [ground.servers[0]!.port, relay.port, ground.servers[2]!.port];
  const holder = new Locks(
    await ground.engine(
      {},
      ports.map((port) => ground.connect(port)),
    ),
  );
  const lease = await holder.acquire("left");
  const onlooker = await ground.locks();
  await ground.admins[0]!.flushall();
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
  await using ground = await Ground.start(3, { maxTtlMs: TTL_MS });
  const locks = await ground.locks();
  await locks.acquire("a");
  await ground.admins[0]!.flushall();
  await ground.admins[2]!.flushall();
  const listing = async () => {
    for await (const { resource } of locks.list()) assert.equal(resource, "a");
  };
  await assert.rejects(listing(), { code: "ENGINE", message: /quarantine/ });
});
