// What is special about etcd: the number of requests, leases and revisions, and keys that somebody
// else changes.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { UsageError } from "../../../../errors.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

type Part = (etcd: EtcdTestServer) => Promise<void>;

/** Each test has a server of its own, because counters and keys belong to the server. */
function itWithServer(title: string, part: Part): void {
  it(title, async () => {
    await using server = await startEtcd();
    await using etcd = new EtcdTestServer(server);
    await part(etcd);
  });
}

describe("etcd's behaviour", { concurrency: 4 }, () => {
  itWithServer("acquire and release without contention are one transaction each", async (etcd) => {
    const locks = etcd.locks();
    await (await locks.acquire("warm")).release();
    const before = [await etcd.calls("Txn"), await etcd.calls("Lease[GK]")];
    for (const fair of ["cohort", "strict"] as const) {
      for (let i = 0; i < 5; i++) await (await locks.acquire(`a${i}`, { fair })).release();
    }
    const after = [await etcd.calls("Txn"), await etcd.calls("Lease[GK]")];
    assert.deepEqual(after, [before[0]! + 20, before[1]]);
  });

  itWithServer("a token is the create revision times 1024", async (etcd) => {
    const locks = etcd.locks();
    const lease = await locks.acquire("a");
    const json = JSON.parse(await etcd.ctl("get", "--prefix", "holdfast/a/", "-w", "json"));
    assert.equal(lease.token, BigInt(json.kvs[0].create_revision) * 1024n);
  });

  itWithServer(
    "a lease whose key was deleted by hand is lost at its next renewal",
    async (etcd) => {
      const locks = etcd.locks();
      const lease = await locks.acquire("a", { ttlMs: 5_000 });
      const neighbour = await locks.acquire("b", { ttlMs: 5_000 });
      await etcd.ctl("del", "--prefix", "holdfast/a/");
      assert.equal(await lossOf(lease), "expired");
      assert.equal(await lease.release(), "gone");
      assert.equal(neighbour.held, true);
    },
  );

  itWithServer(
    "leases are lost when their etcd lease is revoked, and others go on",
    async (etcd) => {
      const locks = etcd.locks();
      const lease = await locks.acquire("a", { ttlMs: 2_000 });
      await etcd.ctl("lease", "revoke", BigInt(await etcd.leaseOf("a")).toString(16));
      assert.equal(await lossOf(lease), "expired");
      const next = await locks.acquire("a", { ttlMs: 5_000 });
      await sleep(6_000);
      assert.equal(next.held, true, "a new lease was made, and is kept");
      assert.ok(next.token > lease.token);
    },
  );

  itWithServer(
    "a lease that is not renewed ends, although other leases keep its etcd lease alive",
    async (etcd) => {
      const [locks, other] = [etcd.locks(), etcd.locks()];
      const kept = await locks.acquire("kept", { ttlMs: 5_000 });
      const left = await locks.acquire("left", { ttlMs: 5_000, renew: false });
      const closed = await locks.acquire("closed", {
        ttlMs: 5_000,
        renew: false,
        lockDelayMs: 3_000,
      });
      const successor = await other.acquire("left", { waitMs: 30_000 });
      assert.equal(left.held, false);
      await until("its lock-delay has begun", async () => {
        return (await other.inspect("closed")).closedMs > 0;
      });
      assert.equal(closed.held, false);
      const late = await other.acquire("closed", { waitMs: 30_000 });
      assert.equal(kept.held, true);
      await Promise.all([successor, late, kept].map((lease) => lease.release()));
    },
  );

  itWithServer(
    "a lease whose release failed ends, although other leases keep its etcd lease alive",
    async (etcd) => {
      const [relay] = await etcd.relays();
      const endpoints = [`127.0.0.1:${relay!.port}`];
      const [ours, other] = [etcd.locks({ endpoints }), etcd.locks()];
      const options = { ttlMs: 12_000, callTimeoutMs: 1_500, fair: "strict" } as const;
      // The etcd lease is made with a longer timeout than that.
      await ours.acquire("first", { ttlMs: 12_000 });
      const kept = await ours.acquire("kept", options);
      const given = await ours.acquire("given", options);
      relay!.cut();
      await assert.rejects(given.release(), { code: "ENGINE" });
      relay!.mend();
      const next = await other.acquire("given", { waitMs: 40_000 });
      assert.ok(next.token > given.token);
      assert.equal(kept.held, true);
      await Promise.all([next, kept].map((lease) => lease.release()));
    },
  );

  itWithServer("a lock-delay far longer than the ttl shortens no lease", async (etcd) => {
    const [locks, other] = [etcd.locks(), etcd.locks()];
    const options = { ttlMs: 5_000, lockDelayMs: 60_000 };
    const lease = await locks.acquire("a", options);
    const waiting = other.acquire("a", options);
    await sleep(6_000);
    assert.equal(lease.held, true);
    assert.equal(await lease.release(), "released");
    const next = await waiting;
    await sleep(6_000);
    assert.equal(next.held, true);
    assert.equal(await next.release(), "released");
    assert.equal((await other.inspect("a")).closedMs, 0);
  });

  itWithServer("many leases with long names are released together", async (etcd) => {
    const locks = etcd.locks();
    const names = Array.from({ length: 120 }, (_, i) => `${i}`.padEnd(340, "锁"));
    const leases = await Promise.all(names.map((name) => locks.acquire(name, { fair: "strict" })));
    const answers = await Promise.all(leases.map((lease) => lease.release()));
    assert.ok(answers.every((answer) => answer === "released"));
  });

  itWithServer("a renewal for another ttl moves its own key only", async (etcd) => {
    const [locks, other] = [etcd.locks(), etcd.locks()];
    const [a, b] = [
      await locks.acquire("a", { ttlMs: 5_000 }),
      await locks.acquire("b", { ttlMs: 5_000 }),
    ];
    await a.renew({ ttlMs: 60_000 });
    const left = async (name: string) => (await other.inspect(name)).holders[0]?.remainingMs ?? 0;
    assert.ok((await left("a")) > 50_000 && (await left("b")) <= 5_000);
    assert.ok(a.remainingMs() > 50_000 && a.remainingMs() < 60_000);
    await a.renew({ ttlMs: 3_000 });
    assert.ok((await left("a")) <= 3_000 && a.remainingMs() <= 3_000);
    assert.equal(await other.check(a.sequencer), true);
    await Promise.all([a, b].map((lease) => lease.release()));
  });

  itWithServer("a key named like ours with another content is an error", async (etcd) => {
    const locks = etcd.locks();
    const key = `holdfast/a/h${"0".repeat(32)}`;
    for (const value of ["", "null", "x", "{}", '{"mode":"exclusive"}']) {
      await etcd.ctl("put", "--", key, value);
      const failure = { code: "ENGINE", effect: "unknown" };
      await assert.rejects(locks.tryAcquire("a"), failure, `for ${value}`);
      await assert.rejects(locks.inspect("a"), failure, `for ${value}`);
    }
    await etcd.ctl("del", key);
    await (await locks.acquire("a")).release();
  });

  itWithServer("waiters are woken after a compaction", async (etcd) => {
    const [holder, ours] = [etcd.locks(), etcd.locks()];
    // Shorter than the time between two heartbeats.
    await soon(600, async (attempt) => {
      const name = `a${attempt}`;
      const lease = await holder.acquire(name);
      const waiting = ours.acquire(name);
      await etcd.untilWaiters(holder, name, 1);
      for (let i = 0; i < 5; i++) await etcd.ctl("put", "holdfast-else", String(i));
      const json = JSON.parse(await etcd.ctl("get", "holdfast-else", "-w", "json"));
      await etcd.ctl("compact", "--physical", String(json.header.revision));
      const tookMs = await timed(async () => {
        await lease.release();
        await waiting;
      });
      const next = await waiting;
      const lost = lossOf(next);
      assert.equal(await holder.revoke(name, { token: next.token }), "revoked");
      assert.equal(await lost, "revoked");
      await next.release();
      return tookMs;
    });
  });

  itWithServer(
    "a guard lets a transaction commit only while the grant of the lease exists",
    async (etcd) => {
      const engine = etcd.engine();
      const locks = etcd.locksOn(engine);
      const lease = await locks.acquire("a");
      const { compare, key, createRevision } = engine.guard(lease);
      assert.match(key, /^holdfast\/a\//);
      assert.equal(BigInt(createRevision), lease.token / 1024n);
      const commits = async () => {
        const put = { request_put: { key: encode("holdfast-data"), value: encode("1") } };
        const body = JSON.stringify({ compare: [compare], success: [put] });
        const response = await fetch(`http://${etcd.endpoints[0]}/v3/kv/txn`, {
          method: "POST",
          body,
        });
        return ((await response.json()) as { succeeded?: boolean }).succeeded === true;
      };
      assert.equal(await commits(), true);
      await lease.renew({ ttlMs: 60_000 });
      assert.equal(await commits(), true, "a renewal does not change it");
      await lease.release();
      assert.equal(await commits(), false);
      assert.throws(() => engine.guard(lease), UsageError);
      const successor = await locks.acquire("a");
      assert.equal(await commits(), false, "a successor's grant is another one");
      await successor.release();
    },
  );
});

function encode(plain: string): string {
  return Buffer.from(plain).toString("base64");
}
