// A leader that is cut off from the others, or was replaced while it hung, goes on answering until
// it notices. It answers reads and `sync` alone. It cannot answer requests that need a majority.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay, startZooKeeperEnsemble } from "@holdfast/servers";
import { systemClock } from "../../../../core/runtime/clock.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { zookeeperEngine } from "../../index.js";
import { CODES } from "../../wire/codes.js";
import { sync } from "../../wire/operations.js";
import { Proof } from "../../wire/proof.js";
import { Session } from "../../wire/session.js";
import { fresh } from "../support/test-server.fixture.js";

test("the answers of a leader that is cut off renew no lease and prove no grant", async () => {
  const relays: { relay: Relay; ends: readonly number[] }[] = [];
  const between = async (from: number, to: number, port: number) => {
    const relay = await Relay.start(port);
    relays.push({ relay, ends: [from, to] });
    return relay.port;
  };
  // The leader notices only after ten seconds.
  await using ensemble = await startZooKeeperEnsemble({ config: ["syncLimit=200"], between });
  const leader = await ensemble.leader();
  const at = ensemble.members.indexOf(leader);
  const engines = (["session", "ttl"] as const).map((hold) =>
    zookeeperEngine({ hosts: leader.hosts, hold, prefix: `${hold}/` }),
  );
  const spec = { hosts: [{ host: "127.0.0.1", port: leader.port }], tls: null, digest: null };
  const session = new Session({ ...spec, timeoutMs: 600_000 }, () => {});
  try {
    const one = claim(fresh(), { ttlMs: 30_000 });
    const tokens: bigint[] = [];
    for (const engine of engines) {
      const granted = await engine.tryAcquire(one, now());
      assert.equal(granted.kind, "granted");
      if (granted.kind === "granted") tokens.push(granted.token);
    }
    await session.opened;
    for (const { relay, ends } of relays) if (ends.includes(at)) relay.hang();
    const synced = await session.ask(sync("/"), systemClock.now() + 5_000);
    assert.equal(synced.err, CODES.ok, "the leader has noticed, so the test proves nothing");
    for (const [i, engine] of engines.entries()) {
      const answers = engine.renew([{ ...one, ttlMs: 30_000 }], now(1_000));
      const renewed = await Promise.race([answers, silence()]);
      assert.notEqual(renewed?.[0]?.kind, "renewed");
      const sequence = { resource: one.resource, mode: "exclusive", token: tokens[i]! } as const;
      const checked = engine.check(sequence, now(1_000)).catch(() => null);
      assert.equal(await Promise.race([checked, silence()]), null, "no majority can answer");
    }
  } finally {
    await Promise.all(relays.map(({ relay }) => relay.close()));
    await Promise.all([session.close(), ...engines.map((engine) => engine.close())]);
  }
});

test("a resumed session counts from the next majority answer", () => {
  const proof = new Proof(8_000);
  proof.opened(0, true);
  assert.equal(proof.since, 0);
  // A replaced leader welcomes the session too.
  proof.opened(5_000, false);
  assert.equal(proof.since, 0);
  proof.answered(5_010, 5_020, true);
  assert.equal(proof.since, 5_010);
});

/** Longer than a server that serves takes for an answer. */
function silence(): Promise<null> {
  return new Promise((resolve) => setTimeout(resolve, 1_200, null));
}
