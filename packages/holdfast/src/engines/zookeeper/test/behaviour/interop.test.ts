// Our locks with those of Python's kazoo and Java's Curator on the same nodes.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CURATOR_JARS, ensure } from "@holdfast/servers";
import type { HolderView } from "../../../../engine.js";
import { UnsupportedError } from "../../../../errors.js";
import type { LayoutName } from "../../layout.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;
const folder = mkdtempSync(join(tmpdir(), "zk-interop-"));

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(async () => {
  await zookeeper[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

// Both programs take the hosts and a path, and read lines: "acquire" (waits without a limit), "try"
// and "release". They answer "held", "busy" and "released".
const KAZOO = `
import sys
from kazoo.client import KazooClient
zk = KazooClient(hosts=sys.argv[1])
zk.start()
lock = getattr(zk, sys.argv[3])(sys.argv[2], "a kazoo client")
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "release":
        lock.release()
        print("released", flush=True)
    else:
        held = lock.acquire(blocking=word == "acquire")
        print("held" if held else "busy", flush=True)
zk.stop()
`;

const CURATOR = `
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryNTimes;

public class Locker {
  public static void main(String[] args) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new RetryNTimes(3, 100));
    client.start();
    client.blockUntilConnected();
    InterProcessMutex lock = new InterProcessMutex(client, args[1]);
    System.out.println("ready");
    var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
    for (String word = in.readLine(); word != null; word = in.readLine()) {
      if (word.equals("release")) {
        lock.release();
        System.out.println("released");
      } else {
        boolean held = lock.acquire(word.equals("acquire") ? 60 : 0, TimeUnit.SECONDS);
        System.out.println(held ? "held" : "busy");
      }
    }
    client.close();
  }
}
`;

const FOREIGN_LOCKS: Readonly<
  Record<Exclude<LayoutName, "holdfast">, (path: string) => ForeignLock>
> = {
  kazoo: (path) => kazoo(path, "Lock"),
  curator: (path) => {
    ensure("javac");
    const jars = CURATOR_JARS.map(ensure);
    const source = join(folder, "Locker.java");
    writeFileSync(source, CURATOR);
    const args = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", jars.join(":"), source];
    return new ForeignLock(ensure("java"), [...args, zookeeper.server.hosts, path]);
  },
};

function kazoo(path: string, kind: "Lock" | "ReadLock" | "WriteLock"): ForeignLock {
  return new ForeignLock(ensure("kazoo"), ["-c", KAZOO, zookeeper.server.hosts, path, kind]);
}

describe("interop", { concurrency: 2 }, () => {
  for (const layout of ["kazoo", "curator"] as const) {
    it(`locks of ${layout} and our locks exclude each other, in one queue`, async () => {
      const name = fresh();
      const locks = zookeeper.locks({ prefix: "theirs/", layout });
      await using foreign = FOREIGN_LOCKS[layout](`/theirs/${name}`);
      assert.equal(await foreign.line(), "ready");

      const ours = await locks.acquire(name, { label: "ours" });
      assert.equal(await foreign.ask("try"), "busy");
      foreign.send("acquire");
      await zookeeper.untilWaiters(locks, name, 1);
      const behind = locks.acquire(name, { waitMs: 30_000, fair: "strict" });
      await zookeeper.untilWaiters(locks, name, 2);
      assert.equal(await ours.release(), "released");
      assert.equal(await foreign.line(), "held", "the other program came first");
      assert.equal(await locks.tryAcquire(name), null);
      const { holders, waiters } = await locks.inspect(name);
      assert.deepEqual([holders.length, waiters.length], [1, 1]);
      const [{ token, label }] = holders as [HolderView];
      await assert.rejects(locks.revoke(name, { token }), UnsupportedError);
      const [after] = (await locks.inspect(name)).holders;
      assert.equal(after?.label, label, "the data of the other program's node changed");
      await sleep(100);
      assert.equal(await foreign.ask("release"), "released");
      const next = await behind;
      assert.ok(next.held && next.token > ours.token);
      await next.release();

      assert.equal(await foreign.ask("acquire"), "held");
      const waiting = locks.acquire(name, { waitMs: 60_000 });
      await zookeeper.untilWaiters(locks, name, 1);
      foreign.process.stdin!.end();
      await once(foreign.process, "exit");
      assert.ok((await waiting).held, "the next waiter is granted when the other program ends");
    });
  }

  it("kazoo's readers and writers and our locks exclude each other", async () => {
    const name = fresh();
    const path = `/theirs/${name}`;
    const locks = zookeeper.locks({ prefix: "theirs/", layout: "kazoo" });
    await using one = kazoo(path, "ReadLock");
    await using two = kazoo(path, "ReadLock");
    await using writer = kazoo(path, "WriteLock");
    for (const each of [one, two, writer]) assert.equal(await each.line(), "ready");

    for (const reader of [one, two]) assert.equal(await reader.ask("acquire"), "held");
    assert.equal(await locks.tryAcquire(name), null, "two readers hold");
    assert.equal((await locks.inspect(name)).holders.length, 2);
    const ours = locks.acquire(name, { waitMs: 60_000 });
    await zookeeper.untilWaiters(locks, name, 1);
    assert.equal(await two.ask("release"), "released");
    assert.equal(await locks.tryAcquire(name), null, "one reader holds");
    assert.equal((await locks.inspect(name)).waiters.length, 1);
    assert.equal(await one.ask("release"), "released");

    const lease = await ours;
    for (const each of [one, writer]) assert.equal(await each.ask("try"), "busy");
    one.send("acquire");
    await zookeeper.untilWaiters(locks, name, 1);
    await lease.release();
    assert.equal(await one.line(), "held");
    assert.equal(await one.ask("release"), "released");
    assert.equal(await writer.ask("acquire"), "held");
    assert.equal(await locks.tryAcquire(name), null, "a writer holds");
  });

  it("a shared claim and a lock-delay are refused in the layout of another library", async () => {
    const locks = zookeeper.locks({ layout: "kazoo" });
    await assert.rejects(locks.rwLock(fresh()).read(), UnsupportedError);
    await assert.rejects(locks.acquire(fresh(), { lockDelayMs: 100 }), UnsupportedError);
  });
});

/** A program with the lock of another library. It reads and writes lines. */
class ForeignLock implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  constructor(file: string, args: readonly string[]) {
    this.process = spawn(file, args, { stdio: ["pipe", "pipe", "ignore"] });
    this.process.stdin!.on("error", () => {});
    this.#lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    return (await this.#lines.next()).value ?? "nothing";
  }

  send(word: string): void {
    this.process.stdin!.write(`${word}\n`);
  }

  ask(word: string): Promise<string> {
    this.send(word);
    return this.line();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null || signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exited;
  }
}
