// A client with wrong terms stops only itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { UsageError } from "../../../../errors.js";
import { channels, type Events } from "../../../../events.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

const MAX_TTL_MS = 1_500;
const CERTIFICATE = "{holdfast:}:certificate";
const ROUNDS = 20;

test("a client with other terms certifies no node, however short its quarantine is", async () => {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
  const right = await quorum.locks();
  const wrong = await quorum.locks({ maxTtlMs: 400 }, { defaults: { ttlMs: 300 } });
  await assert.rejects(wrong.tryAcquire("a"), UsageError);
  await quorum.servers[0]!.restart();
  const until = performance.now() + 3 * MAX_TTL_MS;
  while (performance.now() < until) {
    await right.tryAcquire("b").then((lease) => lease?.release());
    await wrong.tryAcquire("a").catch(() => {});
    const certificate = await quorum.admins[0]!.get(CERTIFICATE);
    if (certificate !== null) assert.match(certificate, /maxTtlMs 1500/);
    await sleep(50);
  }
  for (let looks = 0; (await quorum.admins[0]!.get(CERTIFICATE)) === null; looks++) {
    assert.ok(looks < 300, "nobody certified it");
    await right.tryAcquire("b").then((lease) => lease?.release());
    await sleep(100);
  }
  assert.match((await quorum.admins[0]!.get(CERTIFICATE))!, /maxTtlMs 1500/);
});

test("a node that was certified for other terms is left out and reported as foreign", async () => {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
  const certificate = await quorum.admins[0]!.get(CERTIFICATE);
  await quorum.admins[0]!.set(CERTIFICATE, certificate!.replace("maxTtlMs 1500", "maxTtlMs 400"));
  const foreign = new Set<string>();
  const hear = (message: unknown) => {
    const { node, state } = message as Events["node"];
    if (state === "foreign") foreign.add(node);
  };
  channels.node.subscribe(hear);
  const locks = await quorum.locks();
  for (let round = 0; round < ROUNDS; round++) {
    const lease = await locks.acquire("a");
    await lease.renew();
    assert.equal(await lease.release(), "released");
  }
  channels.node.unsubscribe(hear);
  assert.deepEqual([...foreign], [quorum.names[0]]);
  await quorum.servers[1]!.stop();
  await quorum.servers[2]!.stop();
  await assert.rejects(locks.acquire("a", { waitMs: 2_000 }), /belongs to a quorum with "members/);
});
