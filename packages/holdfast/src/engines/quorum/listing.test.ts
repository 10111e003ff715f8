import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay } from "@holdfast/servers";
import { Locks } from "../../locks.js";
import { now } from "../../test-support/call.fixture.js";
import { TestQuorum } from "./test/support/test-quorum.fixture.js";

const TTL_MS = 60_000;
// Later than the nodes that need not be waited for.
const LATE_MS = 400;

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

test("a list shows a name once although a node that was looked through answers late", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: TTL_MS });
  await using relay = await Relay.start(quorum.servers[0]!.port);
  const ports = [relay.port, quorum.servers[1]!.port, quorum.servers[2]!.port];
  const engine = await quorum.engine(
    {},
    ports.map((port) => quorum.connect(port)),
  );
  const locks = new Locks(engine);
  await locks.acquire("a");
  const shown: string[] = [];
  let cursor: string | null = null;
  do {
    const page = await engine.list({ match: "*", cursor, max: 1 }, now());
    shown.push(...page.views.map(({ resource }) => resource));
    cursor = page.cursor;
    if (cursor !== null && (JSON.parse(cursor) as { node: number }).node === 1) {
      relay.hold();
      setTimeout(() => relay.deliver(), LATE_MS);
    }
  } while (cursor !== null);
  assert.deepEqual(shown, ["a"]);
  await locks.close();
});
