import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type EtcdServer, ensure, Relay } from "@holdfast/servers";
import { LeaseLostError } from "../../errors.js";
import type { Lease } from "../../lease.js";
import { Locks } from "../../locks.js";
import { type EtcdEngineOptions, type EtcdLocks, etcdEngine } from "./index.js";

export type OpenOptions = Partial<EtcdEngineOptions>;

/** Clients on some servers, closed together. The servers are whoever's who started them. */
export class Ground implements AsyncDisposable {
  readonly servers: readonly EtcdServer[];
  readonly #closers: (() => unknown)[] = [];

  constructor(...servers: EtcdServer[]) {
    this.servers = servers;
  }

  get endpoints(): string[] {
    return this.servers.map(({ port }) => `127.0.0.1:${port}`);
  }

  engine(options: OpenOptions = {}): EtcdLocks {
    const engine = etcdEngine({ endpoints: this.endpoints, ...options });
    this.#closers.push(() => engine.close());
    return engine;
  }

  /** As another process would have it. */
  locks(options: OpenOptions = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  locksOn(engine: EtcdLocks): Locks {
    const locks = new Locks(engine);
    this.#closers.unshift(() => locks.close());
    return locks;
  }

  /** Between a client and each server. */
  async relays(): Promise<Relay[]> {
    const relays = await Promise.all(this.servers.map(({ port }) => Relay.start(port)));
    for (const relay of relays) this.#closers.push(() => relay.close());
    return relays;
  }

  /** What etcdctl prints. */
  async ctl(...args: string[]): Promise<string> {
    const { file, env, endpoints } = this.ctlCommand();
    const { stdout } = await promisify(execFile)(file, [endpoints, ...args], { env });
    return stdout.trim();
  }

  /** The etcd leases that the keys of a resource hang on, as decimal numbers, the oldest key's first. */
  async leasesIn(resource: string, kind: "h" | "~" = "h"): Promise<string[]> {
    const key = `holdfast/${resource}/${kind}`;
    const json = await this.ctl("get", "--prefix", "--sort-by=CREATE", key, "-w", "json");
    // Not parsed: as numbers they would be rounded.
    return [...json.matchAll(/"lease":(\d+)/g)].map(([, id]) => id!);
  }

  /** The one that the holder of a resource hangs on, or its mark. */
  async leaseOf(resource: string, kind: "h" | "~" = "h"): Promise<string> {
    const [id] = await this.leasesIn(resource, kind);
    assert.ok(id !== undefined, `nobody holds ${resource}`);
    return id;
  }

  /** By way of the gateway, which answers when a majority has done it. */
  async revoke(lease: string): Promise<void> {
    const url = `http://${this.endpoints.at(-1)}/v3/lease/revoke`;
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ ID: lease }) });
    assert.equal(response.status, 200, await response.text());
  }

  ctlCommand(): { file: string; env: NodeJS.ProcessEnv; endpoints: string } {
    return {
      file: ensure("etcdctl"),
      env: { ...process.env, ETCDCTL_API: "3" },
      endpoints: `--endpoints=${this.endpoints.join(",")}`,
    };
  }

  /** A counter of the first server's own, summed over its labels. */
  async metric(pattern: RegExp): Promise<number> {
    const response = await fetch(`http://${this.endpoints[0]}/metrics`);
    const lines = (await response.text()).split("\n").filter((line) => pattern.test(line));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  calls(method: string): Promise<number> {
    return this.metric(new RegExp(`^grpc_server_started_total.*grpc_method="${method}"`));
  }

  async untilWaiters(locks: Locks, resource: string, count: number): Promise<void> {
    await until(`${count} wait for ${resource}`, async () => {
      const { waiters } = await locks.inspect(resource);
      return waiters.length === count;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off cannot be closed in order, and need not be.
    for (const close of this.#closers)
      await Promise.race([close(), sleep(1_500, null, { ref: false })]);
  }
}

/** A fixture beside this file as another process, which is told by lines and answers by lines. */
export function startChild(fixture: string, args: readonly string[]) {
  const file = fileURLToPath(new URL(`${fixture}.fixture.js`, import.meta.url));
  const child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.on("error", () => {});
  return {
    process: child,
    lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
    say: (line: string) => child.stdin.write(`${line}\n`),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

export async function lossOf(lease: Lease): Promise<string> {
  if (!lease.signal.aborted) await once(lease.signal, "abort");
  assert.ok(lease.signal.reason instanceof LeaseLostError);
  return lease.signal.reason.reason;
}

/** Looks again and again until it is so; gives how long that took. */
export async function until(
  what: string,
  check: () => unknown,
  withinMs = 30_000,
): Promise<number> {
  const started = performance.now();
  while (!(await check())) {
    assert.ok(performance.now() - started < withinMs, `${what}: not within ${withinMs} ms`);
    await sleep(10);
  }
  return performance.now() - started;
}
