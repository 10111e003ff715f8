import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Relay,
  startZooKeeper,
  type ZooKeeperOptions,
  type ZooKeeperServer,
} from "@holdfast/servers";
import { callNow } from "../../call.fixture.js";
import { systemClock } from "../../clock.js";
import type { Claim, Engine } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { Locks } from "../../locks.js";
import { type ZookeeperEngineOptions, zookeeperEngine } from "./index.js";
import { getChildren, getData, type Operation, remove } from "./wire/operations.js";
import { Session } from "./wire/session.js";

type Options = Partial<ZookeeperEngineOptions>;

/** A ZooKeeper for a test file, and clients on it that are closed with it. */
export class Ground implements AsyncDisposable {
  readonly server: ZooKeeperServer;
  readonly #closers: (() => unknown)[] = [];
  #admin: Session | null = null;

  private constructor(server: ZooKeeperServer) {
    this.server = server;
  }

  static async start(options?: ZooKeeperOptions): Promise<Ground> {
    return new Ground(await startZooKeeper(options));
  }

  engine(options: Options = {}): Engine {
    const engine = zookeeperEngine({ hosts: this.server.hosts, ...options });
    this.#closers.push(() => engine.close());
    return engine;
  }

  /** As another process would have it: its own sessions and connections. */
  locks(options: Options = {}): Locks {
    const locks = new Locks(this.engine(options));
    this.#closers.push(() => locks.close());
    return locks;
  }

  async relay(): Promise<Relay> {
    const relay = await Relay.start(this.server.port);
    this.#closers.unshift(() => relay.close());
    return relay;
  }

  session(options: Partial<ConstructorParameters<typeof Session>[0]> = {}, onEnd = () => {}) {
    const hosts = [{ host: "127.0.0.1", port: this.server.port }];
    const spec = { hosts, timeoutMs: 4_000, tls: null, digest: null, ...options };
    const session = new Session(spec, onEnd);
    this.#closers.push(() => session.close());
    return session;
  }

  /** By hand, past the engine. */
  async ask<T>(operation: Operation<T>): Promise<T | null> {
    this.#admin ??= this.session();
    return (await this.#admin.ask(operation, systemClock.now() + 5_000)).value;
  }

  async children(path: string): Promise<string[]> {
    return (await this.ask(getChildren(path)))?.names.sort() ?? [];
  }

  async data(path: string): Promise<string> {
    return (await this.ask(getData(path)))?.data.toString() ?? "";
  }

  async deleteChildren(path: string): Promise<void> {
    for (const name of await this.children(path)) await this.ask(remove(`${path}/${name}`));
  }

  async untilWaiters(locks: Locks, resource: string, count: number): Promise<void> {
    const see = async () => (await locks.inspect(resource)).waiters.length === count;
    await until(`${count} wait for ${resource}`, see);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off or refused cannot be closed in order, and need not be.
    const closing = Promise.allSettled(this.#closers.reverse().map(async (close) => close()));
    await Promise.race([closing, sleep(3_000)]);
    await this.server.stop();
  }
}

/** A name that no other test of the file uses. */
export function fresh(name = "r"): string {
  return `${name}-${randomBytes(4).toString("hex")}`;
}

/** For plays with the engine alone. */
export function claim(resource: string, more: Partial<Claim> = {}): Claim {
  return {
    ...{ resource, grantId: mintGrantId(), mode: "exclusive", limit: null, ttlMs: 10_000 },
    ...{ lockDelayMs: 0, tokens: 1, label: "test" },
    ...more,
  };
}

export const now = callNow;

/** Looks again and again until it is so; gives how long that took. */
export async function until(
  what: string,
  check: () => unknown,
  withinMs = 30_000,
): Promise<number> {
  const started = performance.now();
  for (;;) {
    if (await check()) return performance.now() - started;
    const tookMs = performance.now() - started;
    assert.ok(tookMs < withinMs, `${what}: not within ${withinMs} ms`);
    await sleep(10);
  }
}
