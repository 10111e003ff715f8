// What the torture takes for the truth about a quorum while one of its nodes has forgotten everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay } from "@holdfast/servers";
import { EngineError } from "../../../../errors.js";
import { Locks } from "../../../../locks.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";
import { grantsOn, type NodeState } from "../support/truth.fixture.js";

const MAX_TTL_MS = 8_000;
const W = 3;

const record = (fence: number, ends: number) => `x:1:${fence}:1:0:0:0:0:0:${ends}:0:law`;
const has = (...records: string[]): NodeState => ({
  ...{ atMs: 1_000, isCertified: true, records, forgotten: [] },
});
const forgot = (...forgotten: string[]): NodeState => ({
  ...{ atMs: 1_000, isCertified: false, records: [], forgotten },
});
const NOTHING = has();

test("a grant is what enough nodes have, for as long as enough of them have it", () => {
  const nodes = [has(record(7, 1_400)), has(record(7, 1_300)), NOTHING, NOTHING];
  assert.deepEqual(grantsOn([...nodes, has(record(7, 1_200))], W), [
    { token: 7n, remainingMs: 200 },
  ]);
  assert.deepEqual(grantsOn([...nodes, NOTHING], W), []);
  assert.deepEqual(grantsOn([...nodes, has(record(7, 1_000))], W), [], "one of them is over");
});

test("a node in quarantine counts for whoever it had, as long as it had it, and for nobody else", () => {
  const nodes = [has(record(7, 1_400)), has(record(7, 1_300)), NOTHING, NOTHING];
  assert.deepEqual(grantsOn([...nodes, forgot(record(7, 1_200))], W), [
    { token: 7n, remainingMs: 200 },
  ]);
  assert.deepEqual(grantsOn([...nodes, forgot()], W), [], "it never had this one");
  assert.deepEqual(grantsOn([...nodes, forgot(record(6, 1_200))], W), [], "it had another");
  assert.deepEqual(grantsOn([...nodes, forgot(record(7, 1_000))], W), [], "and that is over");
});

test("a node that is certified again counts for what it has, and not for what it had", () => {
  const nodes = [has(record(7, 1_400)), has(record(7, 1_300)), NOTHING, NOTHING];
  const back: NodeState = { ...forgot(record(7, 1_200)), isCertified: true };
  assert.deepEqual(grantsOn([...nodes, back], W), []);
});

// The schedule behind a report of the torture: a lease that nobody renews is on exactly W nodes, and one
// of these is emptied.
test("whoever has W nodes of which one is emptied holds on, and nobody else is let in", async () => {
  await using quorum = await TestQuorum.start(3, { maxTtlMs: MAX_TTL_MS });
  await using relay = await Relay.start(quorum.servers[2]!.port);
  relay.cut();
  const ports = [quorum.servers[0]!.port, quorum.servers[1]!.port, relay.port];
  const holder = new Locks(
    await quorum.engine(
      {},
      ports.map((port) => quorum.connect(port)),
    ),
    { defaults: { ttlMs: MAX_TTL_MS } },
  );
  const rival = await quorum.locks();
  const lease = await holder.acquire("a", { ttlMs: MAX_TTL_MS, renew: false });
  const [records] = await Promise.all(quorum.admins.slice(2).map((one) => one.hlen("holdfast:a")));
  assert.equal(records, 0, "it is on two nodes of three");
  await quorum.empty(0);
  await quorum.servers[0]!.restart();
  let looks = 0;
  for (;;) {
    const grants = await quorum.truth("a");
    const other = await rival.tryAcquire("a").catch((error: unknown) => {
      assert.ok(error instanceof EngineError, String(error));
      return null;
    });
    const believedMs = lease.remainingMs();
    if (!lease.held) break;
    looks++;
    assert.equal(other, null, "two hold it");
    assert.deepEqual(
      grants.map(({ token }) => token),
      [lease.token],
    );
    assert.ok(believedMs <= grants[0]!.remainingMs, "it believes in more than there is");
  }
  assert.ok(looks > 0, "the lease was over before anybody looked");
  await holder.close();
});
