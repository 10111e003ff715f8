// A follower that is cut off from its leader still answers pings and reads for a while. In this
// time the leader ends the sessions of its clients.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Relay, startZooKeeperEnsemble } from "@holdfast/servers";
import { connect } from "../../../../connect.js";
import { hostInstant, systemClock } from "../../../../core/runtime/clock.js";
import { until } from "../../../../test-support/until.fixture.js";
import { CODES } from "../../wire/codes.js";
import { exists } from "../../wire/operations.js";
import { Session } from "../../wire/session.js";
import { fresh } from "../support/test-server.fixture.js";

test("a holder on a follower that is cut off loses its lease before the next waiter is granted", async () => {
  const relays: Relay[] = [];
  const from = new Map<Relay, number>();
  const between = async (member: number, _to: number, port: number) => {
    const relay = await Relay.start(port);
    relays.push(relay);
    from.set(relay, member);
    return relay.port;
  };
  // The follower notices only after ten seconds.
  await using ensemble = await startZooKeeperEnsemble({ config: ["syncLimit=200"], between });
  try {
    const leader = await ensemble.leader();
    const at = ensemble.members.findIndex((member) => member !== leader);
    const follower = ensemble.members[at]!;
    const resource = fresh();
    await using ours = await connect(follower.url);
    await using other = await connect(leader.url);
    const session = new Session(
      {
        // So long that the follower asks the leader nothing in this time.
        ...{ hosts: [{ host: "127.0.0.1", port: follower.port }], timeoutMs: 600_000 },
        ...{ tls: null, digest: null },
      },
      () => {},
    );
    await session.opened;
    const lease = await ours.acquire(resource, { ttlMs: 2_000 });
    const waiting = other.acquire(resource, { waitMs: 60_000, ttlMs: 30_000 });
    await until("it waits", async () => (await other.inspect(resource)).waiters.length === 1);
    for (const relay of relays) if (from.get(relay) === at) relay.hang();
    let lastHeldAt = 0;
    const looking = setInterval(() => {
      if (lease.held) lastHeldAt = hostInstant();
    }, 1);
    const next = await waiting;
    const grantedAt = hostInstant();
    clearInterval(looking);
    assert.equal(lease.held, false, "held while another claim was granted the resource");
    assert.ok(lastHeldAt < grantedAt);
    assert.ok(next.token > lease.token);
    // The follower must still answer reads, or the test proves nothing.
    const answer = await session.ask(exists("/zookeeper"), systemClock.now() + 2_000);
    assert.equal(answer.err, CODES.ok, "the follower has noticed, so the test proves nothing");
    await session.close();
  } finally {
    await Promise.all(relays.map((relay) => relay.close()));
  }
});
