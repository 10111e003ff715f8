import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Relay } from "@holdfast/servers";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import { now } from "../../../../test-support/call.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const MODE = { mode: "exclusive", limit: null } as const;
const CLAIM = { ...MODE, resource: "a", ttlMs: 50_000, lockDelayMs: 0, tokens: 1, label: "test" };
/** The test must be over before a node times out. */
const PATIENT = { maxTtlMs: 60_000, nodeTimeoutMs: 10_000 };

// The first node accepts and the two others are held by somebody else. The release on the first node is
// not answered.
test("a busy answer says that it is remembered while a node has not confirmed the take-back", async () => {
  await using quorum = await TestQuorum.start(3, PATIENT);
  await using cut = await Relay.start(quorum.servers[0]!.port);
  cut.cut();
  const ports = [cut.port, quorum.servers[1]!.port, quorum.servers[2]!.port];
  const holder = await quorum.engine(
    {},
    ports.map((port) => quorum.connect(port)),
  );
  const held = { ...CLAIM, grantId: mintGrantId() };
  assert.equal((await holder.tryAcquire(held, now())).kind, "granted");
  const engine = await quorum.severable();
  const [first, ...others] = quorum.relaysOf(engine);
  for (const relay of others) relay.hold();
  const answer = engine.tryAcquire({ ...CLAIM, grantId: mintGrantId() }, now(10_000));
  while ((await quorum.admins[0]!.hlen("holdfast:a")) === 0) await sleep(5);
  first!.hold();
  for (const relay of others) relay.deliver();
  const refused = await answer;
  assert.equal(refused.kind, "busy");
  assert.equal("remembered" in refused && refused.remembered, true);
  assert.equal(await quorum.admins[0]!.hlen("holdfast:a"), 1);
  first!.deliver();
  while ((await quorum.admins[0]!.hlen("holdfast:a")) > 0) await sleep(5);
});
