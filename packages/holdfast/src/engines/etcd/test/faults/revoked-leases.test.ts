// A revoked etcd lease takes all its keys with it. The holders must hear of it at once, because the
// next waiters are granted in the same moment.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import type { Lease } from "../../../../core/holding/lease.js";
import { LeaseLostError } from "../../../../errors.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HoldingRelay, putOf } from "../support/holding-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 60_000;
/**
 * A report takes milliseconds, and longer on a busy machine. The next renewal is 20 s away, so a
 * loss that is reported within this time was not found by it.
 */
const SOON_MS = 12_000;
/** Long enough for a wrong loss to show. No test waits for a right one by this. */
const SETTLE_MS = 300;

function itWithServer(
  title: string,
  part: (etcd: EtcdTestServer, server: EtcdServer) => Promise<void>,
): void {
  it(title, async () => {
    await using server = await startEtcd();
    await using etcd = new EtcdTestServer(server);
    await part(etcd, server);
  });
}

async function lostWithin(lease: Lease, withinMs: number, why = "expired"): Promise<void> {
  await until(`${lease.resource} is lost`, () => lease.signal.aborted, withinMs);
  assert.equal(lease.held, false);
  assert.throws(() => lease.assertHeld(), LeaseLostError);
  assert.equal(await lossOf(lease), why);
}

describe("a revoked etcd lease", { concurrency: 4 }, () => {
  itWithServer("ends all its grants at once, and no other", async (etcd) => {
    const locks = etcd.locks();
    const a = await locks.acquire("a", { ttlMs: TTL_MS });
    const b = await locks.acquire("b", { ttlMs: TTL_MS });
    const unrenewed = await locks.acquire("c", { ttlMs: TTL_MS, renew: false });
    const other = await locks.acquire("other", { ttlMs: 2 * TTL_MS });
    await sleep(SETTLE_MS);
    await etcd.revoke(await etcd.leaseOf("a"));
    await Promise.all([
      lostWithin(a, SOON_MS),
      lostWithin(b, SOON_MS),
      lostWithin(unrenewed, SOON_MS, "revoked"),
    ]);
    assert.equal(other.held, true);
    const next = await locks.acquire("a", { ttlMs: TTL_MS });
    assert.ok(next.token > a.token);
    await etcd.revoke(await etcd.leaseOf("a"));
    await lostWithin(next, SOON_MS);
    assert.equal(await next.release(), "gone");
  });

  itWithServer("ends a grant that was made just before the revocation", async (etcd) => {
    const lease = await etcd.locks().acquire("a", { ttlMs: TTL_MS });
    await etcd.revoke(await etcd.leaseOf("a"));
    await lostWithin(lease, SOON_MS);
  });

  itWithServer("causes two holders for milliseconds at most", async (etcd) => {
    // The time of a read and its answer. Without the canary it would be up to 20 s.
    await soon(500, async (attempt) => {
      const name = `a${attempt}`;
      const [holder, other] = [etcd.locks(), etcd.locks()];
      const lease = await holder.acquire(name, { ttlMs: TTL_MS });
      const waiting = other.acquire(name, { ttlMs: TTL_MS });
      await etcd.untilWaiters(holder, name, 1);
      await etcd.revoke(await etcd.leaseOf(name));
      const next = await waiting;
      const overlapMs = await timed(() => lostWithin(lease, SOON_MS));
      assert.equal(next.held, true);
      return overlapMs;
    });
  });

  for (const compacts of [false, true]) {
    const title = `is reported when the stream is back${compacts ? ", also after a compaction" : ""}`;
    itWithServer(title, async (etcd) => {
      const [relay] = await etcd.relays();
      const locks = etcd.locks({ endpoints: [`127.0.0.1:${relay!.port}`] });
      const lease = await locks.acquire("a", { ttlMs: TTL_MS });
      const other = await locks.acquire("other", { ttlMs: 2 * TTL_MS });
      await sleep(SETTLE_MS);
      const id = await etcd.leaseOf("a");
      relay!.cut();
      await etcd.revoke(id);
      if (compacts) {
        for (let i = 0; i < 3; i++) await etcd.ctl("put", "holdfast-else", String(i));
        const json = JSON.parse(await etcd.ctl("get", "holdfast-else", "-w", "json"));
        await etcd.ctl("compact", "--physical", String(json.header.revision));
      }
      relay!.mend();
      await lostWithin(lease, SOON_MS);
      assert.equal(other.held, true);
    });
  }

  itWithServer("ends a grant whose answer was still under way", async (etcd, server) => {
    await using relay = await new HoldingRelay(server.port).start();
    const locks = etcd.locks({ endpoints: [relay.endpoint] });
    await locks.acquire("warm", { ttlMs: TTL_MS });
    await sleep(SETTLE_MS);
    relay.holdAnswers(putOf("holdfast/late/h"));
    const acquiring = locks.acquire("late", { ttlMs: TTL_MS });
    await until("its key is there", () => etcd.leaseOf("late").catch(() => false));
    await etcd.revoke(await etcd.leaseOf("late"));
    await sleep(SETTLE_MS);
    relay.deliver();
    const lease = await acquiring;
    assert.equal(await locks.check(lease.sequencer), true, "the grant of the lease exists");
  });

  itWithServer("ends a grant that was being moved to it", async (etcd, server) => {
    await using relay = await new HoldingRelay(server.port).start();
    const locks = etcd.locks({ endpoints: [relay.endpoint] });
    const options = { ttlMs: TTL_MS, callTimeoutMs: 10_000 };
    const lease = await locks.acquire("moved", options);
    const before = await etcd.leaseOf("moved");
    relay.holdAnswers(putOf("holdfast/moved/"));
    const renewing = lease.renew({ ttlMs: 2 * TTL_MS });
    const failing = assert.rejects(renewing, LeaseLostError);
    await until("its key was moved", async () => (await etcd.leaseOf("moved")) !== before);
    await etcd.revoke(await etcd.leaseOf("moved"));
    await sleep(SETTLE_MS);
    relay.deliver();
    await lostWithin(lease, SOON_MS);
    await failing;
  });

  itWithServer("ends no grant that was moved to another lease", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("a", { ttlMs: TTL_MS });
    const before = await etcd.leaseOf("a");
    await lease.renew({ ttlMs: 2 * TTL_MS });
    await etcd.revoke(before);
    await sleep(SETTLE_MS);
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });

  itWithServer("makes the holder put its lock-delay marker again", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("a", { ttlMs: TTL_MS, lockDelayMs: TTL_MS });
    await sleep(SETTLE_MS);
    const marker = () => etcd.leaseOf("a", "~");
    const before = await marker();
    await etcd.revoke(before);
    const after = await untilKnown("its marker is back", () => marker().catch(() => null), SOON_MS);
    assert.notEqual(after, before);
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });

  itWithServer(
    "makes the holder put its marker again, also if the grant was under way",
    async (etcd, server) => {
      await using relay = await new HoldingRelay(server.port).start();
      const locks = etcd.locks({ endpoints: [relay.endpoint] });
      const options = { ttlMs: TTL_MS, lockDelayMs: TTL_MS };
      await locks.acquire("warm", options);
      await sleep(SETTLE_MS);
      relay.holdAnswers(putOf("holdfast/late/h"));
      const acquiring = locks.acquire("late", options);
      const marker = () => etcd.leaseOf("late", "~").catch(() => null);
      const before = await untilKnown("it has a marker", marker, SOON_MS);
      await etcd.revoke(before);
      await sleep(SETTLE_MS);
      relay.deliver();
      const lease = await acquiring;
      await untilKnown("its marker is back", marker, SOON_MS);
      assert.equal(lease.held, true);
    },
  );

  itWithServer("makes its waiter enter the queue again", async (etcd) => {
    const [holder, other] = [etcd.locks(), etcd.locks()];
    const lease = await holder.acquire("a", { ttlMs: TTL_MS });
    const waiting = other.acquire("a", { ttlMs: TTL_MS });
    await etcd.untilWaiters(holder, "a", 1);
    const leases = await etcd.leasesIn("a");
    await etcd.revoke(leases.find((id) => id !== leases[0])!);
    await etcd.untilWaiters(holder, "a", 0);
    await etcd.untilWaiters(holder, "a", 1);
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    assert.equal(await other.check(next.sequencer), true);
  });
});

describe("the canary of an etcd lease", { concurrency: 4 }, () => {
  const notes = "holdfast/%note/";

  itWithServer(
    "is one key for all grants with one ttl, and costs one transaction",
    async (etcd) => {
      const locks = etcd.locks();
      const before = [await etcd.calls("Txn"), await etcd.calls("LeaseGrant")];
      const leases = [];
      for (const name of ["a", "b", "c"]) leases.push(await locks.acquire(name, { ttlMs: TTL_MS }));
      const made = [await etcd.calls("Txn"), await etcd.calls("LeaseGrant")];
      // One for each grant, and one for each new lease: the lease of the waiters is one of them.
      const shared = made[1]! - before[1]!;
      assert.equal(made[0]! - before[0]!, leases.length + shared);
      assert.equal(
        (await etcd.ctl("get", "--prefix", "--keys-only", notes)).split("\n\n").length,
        shared,
      );
      for (const lease of leases) await lease.release();
    },
  );

  itWithServer(
    "may be deleted by hand: no lease is lost, and the next etcd lease has a canary",
    async (etcd) => {
      const locks = etcd.locks();
      const lease = await locks.acquire("a", { ttlMs: TTL_MS });
      await sleep(SETTLE_MS);
      const before = await etcd.leaseOf("a");
      await etcd.ctl("del", "--prefix", notes);
      await until("the grant was moved", async () => (await etcd.leaseOf("a")) !== before, SOON_MS);
      await sleep(SETTLE_MS);
      assert.equal(lease.held, true);
      await etcd.revoke(await etcd.leaseOf("a"));
      await lostWithin(lease, SOON_MS);
    },
  );

  itWithServer("ends with an unused etcd lease, and no other lease is lost", async (etcd) => {
    const locks = etcd.locks();
    const short = await locks.acquire("short", { ttlMs: 2_000 });
    const id = await etcd.leaseOf("short");
    const long = await locks.acquire("long", { ttlMs: TTL_MS });
    assert.ok((await etcd.ctl("get", "--prefix", notes)).includes(id));
    assert.equal(await short.release(), "released");
    await until(
      "the canary is gone",
      async () => !(await etcd.ctl("get", "--prefix", notes)).includes(id),
    );
    await sleep(SETTLE_MS);
    assert.equal(long.held, true);
    const again = await locks.acquire("short", { ttlMs: 2_000 });
    assert.equal(await locks.check(again.sequencer), true);
  });
});

async function untilKnown<T>(
  what: string,
  ask: () => Promise<T | null>,
  withinMs: number,
): Promise<T> {
  let known: T | null = null;
  await until(
    what,
    async () => {
      known = await ask();
      return known !== null;
    },
    withinMs,
  );
  return known!;
}
