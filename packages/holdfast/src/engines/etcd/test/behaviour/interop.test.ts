// With an empty prefix, `etcdctl lock` (which is Go's concurrency.Mutex) and our locks share one
// queue.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdServer, startEtcd } from "@holdfast/servers";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

let server: EtcdServer;
before(async () => {
  server = await startEtcd();
});
after(() => server.stop());

/** `etcdctl lock NAME`: prints its key once it holds, and holds until it is interrupted. */
class ForeignLock {
  readonly #child: ChildProcess;
  key = "";

  constructor(etcd: EtcdTestServer, name: string, ttlS = 5) {
    const { file, env, endpoints } = etcd.ctlCommand();
    this.#child = spawn(file, [endpoints, "lock", name, `--ttl=${ttlS}`], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#child.stdout!.on("data", (data: Buffer) => {
      this.key += data.toString();
    });
  }

  get holds(): boolean {
    return this.key !== "";
  }

  /** Releases the lock, or dies. */
  async leave(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }
}

function itWithServer(
  title: string,
  part: (etcd: EtcdTestServer, name: string) => Promise<void>,
): void {
  it(title, async () => {
    await using etcd = new EtcdTestServer(server);
    await part(etcd, `interop-${title.length}`);
  });
}

describe("interop", { concurrency: 3 }, () => {
  itWithServer("a lock of etcdctl keeps our locks out until it is released", async (etcd, name) => {
    const locks = etcd.locks({ prefix: "" });
    // Sooner than a heartbeat: the watch reports the end.
    await soon(900, async () => {
      const foreign = new ForeignLock(etcd, name);
      await until("etcdctl holds", () => foreign.holds);
      assert.equal(await locks.tryAcquire(name), null);
      assert.equal(await locks.tryAcquire(name, { mode: "shared" }), null);
      const [holder] = (await locks.inspect(name)).holders;
      assert.match(holder?.label ?? "", /^another program, [0-9a-f]+$/);
      const listed = [];
      for await (const { resource } of locks.list({ match: name })) listed.push(resource);
      assert.deepEqual(listed, [name]);
      const waiting = locks.acquire(name);
      await etcd.untilWaiters(locks, name, 1);
      await sleep(200);
      const tookMs = await timed(async () => {
        await foreign.leave();
        await waiting;
      });
      const lease = await waiting;
      assert.ok(holder !== undefined && lease.token > holder.token);
      await lease.release();
      return tookMs;
    });
  });

  itWithServer("our lock keeps a lock of etcdctl out until it is released", async (etcd, name) => {
    const locks = etcd.locks({ prefix: "" });
    for (const options of [{}, { mode: "shared" }, { lockDelayMs: 1_000 }] as const) {
      const lease = await locks.acquire(name, options);
      const foreign = new ForeignLock(etcd, name);
      await etcd.untilWaiters(locks, name, 1);
      await sleep(200);
      assert.equal(foreign.holds, false);
      assert.equal(await lease.release(), "released");
      await until("etcdctl holds", () => foreign.holds);
      await foreign.leave();
    }
  });

  itWithServer(
    "locks of other programs and our locks are granted in the order of arrival",
    async (etcd, name) => {
      const [a, b] = [etcd.locks({ prefix: "" }), etcd.locks({ prefix: "" })];
      const first = await a.acquire(name);
      const second = new ForeignLock(etcd, name);
      await etcd.untilWaiters(a, name, 1);
      const third = b.acquire(name);
      await etcd.untilWaiters(a, name, 2);
      const fourth = new ForeignLock(etcd, name);
      await etcd.untilWaiters(a, name, 3);
      await first.release();
      await until("the second holds", () => second.holds);
      assert.equal(await Promise.race([third.then(() => "early"), sleep(200)]), undefined);
      await second.leave();
      const lease = await third;
      assert.equal(fourth.holds, false);
      await lease.release();
      await until("the fourth holds", () => fourth.holds);
      await fourth.leave();
    },
  );

  itWithServer(
    "a lock of a killed etcdctl is granted to us when its etcd lease has ended",
    async (etcd, name) => {
      const locks = etcd.locks({ prefix: "" });
      const foreign = new ForeignLock(etcd, name, 5);
      await until("etcdctl holds", () => foreign.holds);
      await foreign.leave("SIGKILL");
      assert.equal(await locks.tryAcquire(name), null);
      const lease = await locks.acquire(name, { waitMs: 40_000 });
      await lease.release();
    },
  );

  itWithServer("the lock of another program can be ended only by force", async (etcd, name) => {
    const locks = etcd.locks({ prefix: "" });
    const foreign = new ForeignLock(etcd, name);
    await until("etcdctl holds", () => foreign.holds);
    const [holder] = (await locks.inspect(name)).holders;
    const { token } = holder!;
    await assert.rejects(locks.revoke(name, { token }), { code: "UNSUPPORTED" });
    assert.equal(await locks.revoke(name, { token, force: true }), "revoked");
    await (await locks.acquire(name, { waitMs: 20_000 })).release();
    await foreign.leave("SIGKILL");
  });
});
