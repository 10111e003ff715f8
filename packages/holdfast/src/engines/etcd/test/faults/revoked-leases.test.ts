// An etcd lease that somebody revokes takes every key that hangs on it. Its holders must hear of it at
// once: whoever stood behind them is granted in the same moment.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import type { Lease } from "../../../../core/holding/lease.js";
import { LeaseLostError } from "../../../../errors.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { HeldBack, putOf } from "../support/held-back.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 60_000;
/**
 * It takes milliseconds; a machine with much other work takes its time for them. The next renewal is 20 s
 * away, so whoever is told within this was not told by it.
 */
const SOON_MS = 12_000;
/** Long enough for a wrong loss to show; no right one is awaited by it. */
const AWHILE_MS = 300;

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

async function toldWithin(lease: Lease, withinMs: number, why = "expired"): Promise<void> {
  await until(`${lease.resource} is lost`, () => lease.signal.aborted, withinMs);
  assert.equal(lease.held, false);
  assert.throws(() => lease.assertHeld(), LeaseLostError);
  assert.equal(await lossOf(lease), why);
}

describe("an etcd lease that was revoked", { concurrency: 4 }, () => {
  itWithServer("ends every grant that hangs on it at once, and no other", async (etcd) => {
    const locks = etcd.locks();
    const a = await locks.acquire("a", { ttlMs: TTL_MS });
    const b = await locks.acquire("b", { ttlMs: TTL_MS });
    const unrenewed = await locks.acquire("c", { ttlMs: TTL_MS, renew: false });
    const other = await locks.acquire("other", { ttlMs: 2 * TTL_MS });
    await sleep(AWHILE_MS);
    await etcd.revoke(await etcd.leaseOf("a"));
    await Promise.all([
      toldWithin(a, SOON_MS),
      toldWithin(b, SOON_MS),
      toldWithin(unrenewed, SOON_MS, "revoked"),
    ]);
    assert.equal(other.held, true);
    const next = await locks.acquire("a", { ttlMs: TTL_MS });
    assert.ok(next.token > a.token);
    await etcd.revoke(await etcd.leaseOf("a"));
    await toldWithin(next, SOON_MS);
    assert.equal(await next.release(), "gone");
  });

  itWithServer("ends a grant that was made just before", async (etcd) => {
    const lease = await etcd.locks().acquire("a", { ttlMs: TTL_MS });
    await etcd.revoke(await etcd.leaseOf("a"));
    await toldWithin(lease, SOON_MS);
  });

  itWithServer("has two holders for milliseconds at most", async (etcd) => {
    // A read and its answer. Without the canary it would be up to 20 s.
    await soon(500, async (attempt) => {
      const name = `a${attempt}`;
      const [holder, other] = [etcd.locks(), etcd.locks()];
      const lease = await holder.acquire(name, { ttlMs: TTL_MS });
      const waiting = other.acquire(name, { ttlMs: TTL_MS });
      await etcd.untilWaiters(holder, name, 1);
      await etcd.revoke(await etcd.leaseOf(name));
      const next = await waiting;
      const overlapMs = await timed(() => toldWithin(lease, SOON_MS));
      assert.equal(next.held, true);
      return overlapMs;
    });
  });

  for (const compacts of [false, true]) {
    const title = `is told of when the stream is back${compacts ? ", though it was compacted" : ""}`;
    itWithServer(title, async (etcd) => {
      const [relay] = await etcd.relays();
      const locks = etcd.locks({ endpoints: [`127.0.0.1:${relay!.port}`] });
      const lease = await locks.acquire("a", { ttlMs: TTL_MS });
      const other = await locks.acquire("other", { ttlMs: 2 * TTL_MS });
      await sleep(AWHILE_MS);
      const id = await etcd.leaseOf("a");
      relay!.cut();
      await etcd.revoke(id);
      if (compacts) {
        for (let i = 0; i < 3; i++) await etcd.ctl("put", "holdfast-else", String(i));
        const json = JSON.parse(await etcd.ctl("get", "holdfast-else", "-w", "json"));
        await etcd.ctl("compact", "--physical", String(json.header.revision));
      }
      relay!.mend();
      await toldWithin(lease, SOON_MS);
      assert.equal(other.held, true);
    });
  }

  itWithServer("ends a grant whose answer was still under way", async (etcd, server) => {
    await using relay = await new HeldBack(server.port).start();
    const locks = etcd.locks({ endpoints: [relay.endpoint] });
    await locks.acquire("warm", { ttlMs: TTL_MS });
    await sleep(AWHILE_MS);
    relay.keep(putOf("holdfast/late/h"));
    const acquiring = locks.acquire("late", { ttlMs: TTL_MS });
    await until("its key is there", () => etcd.leaseOf("late").catch(() => false));
    await etcd.revoke(await etcd.leaseOf("late"));
    await sleep(AWHILE_MS);
    relay.letGo();
    const lease = await acquiring;
    assert.equal(await locks.check(lease.sequencer), true, "what it believes to hold is there");
  });

  itWithServer("ends a grant that was being moved to it", async (etcd, server) => {
    await using relay = await new HeldBack(server.port).start();
    const locks = etcd.locks({ endpoints: [relay.endpoint] });
    const options = { ttlMs: TTL_MS, callTimeoutMs: 10_000 };
    const lease = await locks.acquire("moved", options);
    const before = await etcd.leaseOf("moved");
    relay.keep(putOf("holdfast/moved/"));
    const renewing = lease.renew({ ttlMs: 2 * TTL_MS });
    const failing = assert.rejects(renewing, LeaseLostError);
    await until("its key was moved", async () => (await etcd.leaseOf("moved")) !== before);
    await etcd.revoke(await etcd.leaseOf("moved"));
    await sleep(AWHILE_MS);
    relay.letGo();
    await toldWithin(lease, SOON_MS);
    await failing;
  });

  itWithServer("ends no grant that has left it", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("a", { ttlMs: TTL_MS });
    const before = await etcd.leaseOf("a");
    await lease.renew({ ttlMs: 2 * TTL_MS });
    await etcd.revoke(before);
    await sleep(AWHILE_MS);
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });

  itWithServer("makes the holder put its lock-delay mark again", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("a", { ttlMs: TTL_MS, lockDelayMs: TTL_MS });
    await sleep(AWHILE_MS);
    const mark = () => etcd.leaseOf("a", "~");
    const before = await mark();
    await etcd.revoke(before);
    const after = await untilKnown("its mark is back", () => mark().catch(() => null), SOON_MS);
    assert.notEqual(after, before);
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
  });

  itWithServer(
    "was that of a lock-delay whose grant was under way: the same",
    async (etcd, server) => {
      await using relay = await new HeldBack(server.port).start();
      const locks = etcd.locks({ endpoints: [relay.endpoint] });
      const options = { ttlMs: TTL_MS, lockDelayMs: TTL_MS };
      await locks.acquire("warm", options);
      await sleep(AWHILE_MS);
      relay.keep(putOf("holdfast/late/h"));
      const acquiring = locks.acquire("late", options);
      const mark = () => etcd.leaseOf("late", "~").catch(() => null);
      const before = await untilKnown("it has a mark", mark, SOON_MS);
      await etcd.revoke(before);
      await sleep(AWHILE_MS);
      relay.letGo();
      const lease = await acquiring;
      await untilKnown("its mark is back", mark, SOON_MS);
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
    "is one key for all grants of a ttl, and costs a transaction when it is new",
    async (etcd) => {
      const locks = etcd.locks();
      const before = [await etcd.calls("Txn"), await etcd.calls("LeaseGrant")];
      const leases = [];
      for (const name of ["a", "b", "c"]) leases.push(await locks.acquire(name, { ttlMs: TTL_MS }));
      const made = [await etcd.calls("Txn"), await etcd.calls("LeaseGrant")];
      // One for each grant. The lease of their places in the queue has one as well.
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
    "is deleted by hand: no lease is lost, and the next lease has a canary",
    async (etcd) => {
      const locks = etcd.locks();
      const lease = await locks.acquire("a", { ttlMs: TTL_MS });
      await sleep(AWHILE_MS);
      const before = await etcd.leaseOf("a");
      await etcd.ctl("del", "--prefix", notes);
      await until("it was moved", async () => (await etcd.leaseOf("a")) !== before, SOON_MS);
      await sleep(AWHILE_MS);
      assert.equal(lease.held, true);
      await etcd.revoke(await etcd.leaseOf("a"));
      await toldWithin(lease, SOON_MS);
    },
  );

  itWithServer(
    "ends with a lease that nobody needs any more, and nothing else does",
    async (etcd) => {
      const locks = etcd.locks();
      const short = await locks.acquire("short", { ttlMs: 2_000 });
      const id = await etcd.leaseOf("short");
      const long = await locks.acquire("long", { ttlMs: TTL_MS });
      assert.ok((await etcd.ctl("get", "--prefix", notes)).includes(id));
      assert.equal(await short.release(), "released");
      await until(
        "it is gone",
        async () => !(await etcd.ctl("get", "--prefix", notes)).includes(id),
      );
      await sleep(AWHILE_MS);
      assert.equal(long.held, true);
      const again = await locks.acquire("short", { ttlMs: 2_000 });
      assert.equal(await locks.check(again.sequencer), true);
    },
  );
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
