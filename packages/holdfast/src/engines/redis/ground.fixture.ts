import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  allOrNone,
  type RedisOptions,
  type RedisServer,
  Relay,
  startRedis,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { callNow } from "../../call.fixture.js";
import type { Claim } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { Locks } from "../../locks.js";
import { type RedisClient, type RedisEngineOptions, redisEngine } from "./index.js";

// More would make each other late, and their times wrong.
const AT_A_TIME = 3;
const COMPLAINT_LENGTH = 8_192;

/** Replicas are there at once instead of after the five seconds that gather more of them. */
export const PROMPT: RedisOptions = { args: ["--repl-diskless-sync-delay", "0"] };

export type ClientName = "node-redis" | "ioredis";
export const CLIENT_NAMES: readonly ClientName[] = ["node-redis", "ioredis"];

export interface OpenOptions extends Omit<RedisEngineOptions, "client"> {
  readonly client?: ClientName;
  readonly port?: number;
  /** Where the connection for pushes goes, if elsewhere. */
  readonly pushPort?: number;
  readonly database?: number;
  readonly user?: readonly [name: string, password: string];
  /** Of node-redis; 3 is its default. */
  readonly resp?: 2 | 3;
  /** What node-redis gives for the types of RESP, which are named by their first byte. */
  readonly typeMapping?: { readonly 36?: typeof Buffer; readonly 58?: typeof String };
  /** Shown the client of ioredis before the engine has it. */
  readonly shows?: (client: Redis) => void;
  /** Whether it never connects again once its connection is lost. */
  readonly givesUp?: boolean;
  /** More options for ioredis. */
  readonly ioredis?: {
    readonly stringNumbers?: boolean;
    readonly retryStrategy?: () => number;
    readonly keyPrefix?: string;
    readonly enableReadyCheck?: boolean;
    readonly disableClientInfo?: boolean;
    readonly enableAutoPipelining?: boolean;
    readonly autoResendUnfulfilledCommands?: boolean;
    readonly protocol?: 2 | 3;
  };
}

/** A Redis of its own for each test file, and clients on it that are closed with it. */
export class Ground implements AsyncDisposable {
  readonly server: RedisServer;
  /** Sees everything and is never disturbed. */
  readonly admin: Redis;
  readonly #locks: (() => unknown)[] = [];
  readonly #engines: (() => unknown)[] = [];
  readonly #clients: (() => unknown)[] = [];
  readonly #children: Child[] = [];

  private constructor(server: RedisServer) {
    this.server = server;
    this.admin = new Redis({ port: server.port, retryStrategy: () => 20 });
    this.admin.on("error", () => {});
  }

  static async start(options?: RedisOptions): Promise<Ground> {
    return new Ground(await startRedis(options));
  }

  /** How often the server was asked this since it started or was told to forget, by scripts too. */
  async calls(command: string): Promise<number> {
    const stats = await this.admin.info("commandstats");
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  }

  engine(options: OpenOptions = {}): ReturnType<typeof redisEngine> {
    const { client: name = "ioredis", prefix, idleMs, replicas } = options;
    const client = name === "ioredis" ? this.ioRedis(options) : this.nodeRedis(options);
    const engine = redisEngine({
      client,
      ...(prefix === undefined ? {} : { prefix }),
      ...(idleMs === undefined ? {} : { idleMs }),
      ...(replicas === undefined ? {} : { replicas }),
    });
    this.#engines.push(() => engine.close());
    return engine;
  }

  /** As another process would have it: its own client and its own connection for pushes. */
  locks(options: OpenOptions = {}): Locks {
    const locks = new Locks(this.engine(options));
    this.#locks.push(() => locks.close());
    return locks;
  }

  ioRedis(options: OpenOptions = {}): RedisClient & Redis {
    const { port, pushPort, database, user, ioredis, givesUp = false, shows } = options;
    const client = new Redis({
      port: port ?? this.server.port,
      ...(database === undefined ? {} : { db: database }),
      ...(user === undefined ? {} : { username: user[0], password: user[1] }),
      retryStrategy: () => (givesUp ? null : 20),
      ...ioredis,
    });
    client.on("error", () => {});
    this.#clients.push(() => client.disconnect());
    if (pushPort !== undefined) {
      const duplicate = client.duplicate.bind(client);
      client.duplicate = (override) => duplicate({ ...override, port: pushPort });
    }
    shows?.(client);
    return client as RedisClient & Redis;
  }

  nodeRedis(open: OpenOptions = {}): RedisClient {
    const { port, pushPort, database, user, resp, typeMapping, givesUp = false } = open;
    const socket = { host: "127.0.0.1", port: port ?? this.server.port };
    const options = {
      socket: { ...socket, reconnectStrategy: () => (givesUp ? (false as const) : 20) },
      ...(database === undefined ? {} : { database }),
      ...(user === undefined ? {} : { username: user[0], password: user[1] }),
      ...(resp === undefined ? {} : { RESP: resp }),
      ...(typeMapping === undefined ? {} : { commandOptions: { typeMapping } }),
    };
    const client = createClient(options);
    client.on("error", () => {});
    void client.connect().catch(() => {});
    this.#clients.push(() => client.destroy());
    if (pushPort !== undefined) {
      const elsewhere = { ...options, socket: { ...options.socket, port: pushPort } };
      client.duplicate = (() => createClient(elsewhere)) as unknown as typeof client.duplicate;
    }
    return client as unknown as RedisClient;
  }

  async relay(): Promise<Relay> {
    const relay = await Relay.start(this.server.port);
    this.#clients.push(() => relay.close());
    return relay;
  }

  /** Servers that follow this one, which should be started with PROMPT. */
  async replicas(count: number): Promise<RedisServer[]> {
    const args = ["--replicaof", `127.0.0.1 ${this.server.port}`];
    const started = await allOrNone(Array.from({ length: count }, () => startRedis({ args })));
    this.#clients.push(...started.map((replica) => () => replica.stop()));
    const online = async () => (await this.admin.info("replication")).match(/state=online/g);
    await until("replicas follow", async () => (await online())?.length === count);
    return started;
  }

  /** Starts a fixture beside this file. */
  child(fixture: string, args: readonly string[]): Child {
    const child = new Child(fixture, args);
    this.#children.push(child);
    return child;
  }

  /** Waits until so many stand in line at the server. */
  async untilWaiters(locks: Locks, resource: string, count: number): Promise<void> {
    const deadline = Date.now() + 20_000;
    for (;;) {
      const { waiters } = await locks.inspect(resource);
      if (waiters.length === count) return;
      assert.ok(Date.now() < deadline, `${waiters.length} wait for ${resource}, not ${count}`);
      await sleep(5);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    // What is cut off or refused cannot be closed in order, and need not be.
    const enough = sleep(1_000);
    for (const closers of [this.#locks, this.#engines, this.#clients]) {
      await Promise.race([Promise.allSettled(closers.map(async (close) => close())), enough]);
    }
    this.admin.disconnect();
    await this.server.stop();
  }
}

export type Part = (ground: Ground) => Promise<void>;

/**
 * Plays that mostly wait, some at a time, each on a Redis of its own: what one does to its server
 * disturbs no other.
 */
export function scenes(
  name: string,
  define: (play: (title: string, part: Part) => void) => void,
  options: RedisOptions = {},
): void {
  describe(name, { concurrency: AT_A_TIME }, () => {
    define((title, part) =>
      it(title, async () => {
        await using ground = await Ground.start(options);
        await part(ground);
      }));
  });
}

/** Another process: it is told by lines and answers by lines. */
export class Child {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;
  #complaint = "";

  constructor(fixture: string, args: readonly string[]) {
    const file = fileURLToPath(new URL(`${fixture}.fixture.js`, import.meta.url));
    this.process = spawn(process.execPath, [file, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.process.stderr!.setEncoding("utf8").on("data", (text: string) => {
      process.stderr.write(text);
      this.#complaint = `${this.#complaint}${text}`.slice(-COMPLAINT_LENGTH);
    });
    this.#exited = once(this.process, "close");
    this.process.stdin!.on("error", () => {});
    this.#lines = createInterface({ input: this.process.stdout! })[Symbol.asyncIterator]();
  }

  /** The next line, or null when the child has ended. */
  async line(): Promise<string | null> {
    const next = await this.#lines.next();
    return next.done ? null : next.value;
  }

  /** Fails with what it wrote to stderr if it ended otherwise than well or by a signal. */
  async ended(): Promise<void> {
    await this.#exited;
    const { exitCode } = this.process;
    assert.ok(exitCode === null || exitCode === 0, `it ended with ${exitCode}: ${this.#complaint}`);
  }

  say(line: string): void {
    this.process.stdin!.write(`${line}\n`);
  }

  async kill(): Promise<void> {
    const { exitCode, signalCode } = this.process;
    if (exitCode !== null || signalCode !== null) return;
    const exited = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exited;
  }
}

/** For plays with the engine alone. */
export function claim(resource: string, more: Partial<Claim> = {}): Claim {
  return {
    resource,
    grantId: mintGrantId(),
    mode: "exclusive",
    limit: null,
    ttlMs: 10_000,
    lockDelayMs: 0,
    tokens: 1,
    label: "test",
    ...more,
  };
}

export const now = callNow;

/** Looks again and again until it is so; gives how long that took. */
export async function until(
  what: string,
  check: () => unknown,
  withinMs = 20_000,
): Promise<number> {
  const started = performance.now();
  for (;;) {
    if (await check()) return performance.now() - started;
    const tookMs = performance.now() - started;
    assert.ok(tookMs < withinMs, `${what}: not within ${withinMs} ms`);
    await sleep(5);
  }
}
