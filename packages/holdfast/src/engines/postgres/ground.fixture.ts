import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type PostgresOptions, type PostgresServer, Relay, startPostgres } from "@holdfast/servers";
import pg from "pg";
import { callNow } from "../../call.fixture.js";
import type { Claim } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { Locks } from "../../locks.js";
import { quietPool } from "./harness.fixture.js";
import { createSchema, type PostgresEngineOptions, postgresEngine } from "./index.js";

export interface OpenOptions extends Omit<PostgresEngineOptions, "client"> {
  readonly port?: number;
  readonly pool?: pg.PoolConfig;
}

/** What one play opens on the server of its file, closed with it. */
export class Ground implements AsyncDisposable {
  readonly server: PostgresServer;
  /** Sees everything and is never disturbed. */
  readonly admin: pg.Pool;
  readonly #closers: (() => unknown)[] = [];

  constructor(server: PostgresServer) {
    this.server = server;
    this.admin = quietPool({ port: server.port, max: 3 });
  }

  pool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = quietPool({ port: this.server.port, max: 4, ...options });
    this.#closers.unshift(() => pool.end());
    return pool;
  }

  async client(): Promise<pg.Client> {
    const { port } = this.server;
    const client = new pg.Client({ host: "127.0.0.1", user: "postgres", port });
    client.on("error", () => {});
    await client.connect();
    this.#closers.unshift(() => client.end());
    return client;
  }

  engine({ port, pool, ...options }: OpenOptions = {}): ReturnType<typeof postgresEngine> {
    const client = this.pool({ ...(port === undefined ? {} : { port }), ...pool });
    const engine = postgresEngine({ client, ...options });
    this.#closers.unshift(() => engine.close());
    return engine;
  }

  /** As another process would have it: its own pool and its own connection for pushes. */
  locks(options: OpenOptions = {}): Locks {
    const locks = new Locks(this.engine(options));
    this.#closers.unshift(() => locks.close());
    return locks;
  }

  async relay(): Promise<Relay> {
    const relay = await Relay.start(this.server.port);
    this.#closers.push(() => relay.close());
    return relay;
  }

  /** Waits until so many stand in line at the server. */
  async untilWaiters(resource: string, count: number): Promise<void> {
    await until(`${count} wait for ${resource}`, async () => {
      const text = "SELECT count(*)::int AS n FROM holdfast.waiters WHERE resource = $1";
      return (await this.admin.query(text, [resource])).rows[0].n === count;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // What is cut off or refused cannot be closed in order, and need not be.
    const enough = sleep(2_000);
    for (const close of this.#closers) {
      await Promise.race([(async () => close())().catch(() => {}), enough]);
    }
    await this.admin.end();
  }
}

/** Plays one after the other on one server, each with resources of its own name. */
export function scenes(
  options: PostgresOptions,
  define: (play: (title: string, part: (ground: Ground) => Promise<void>) => void) => void,
): void {
  let server: PostgresServer;
  before(async () => {
    server = await startPostgres(options);
    const pool = quietPool({ port: server.port });
    await createSchema(pool);
    await pool.end();
  });
  after(() => server.stop());
  define((title, part) =>
    test(title, async () => {
      await using ground = new Ground(server);
      await part(ground);
    }));
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
  withinMs = 30_000,
): Promise<number> {
  const started = performance.now();
  for (;;) {
    if (await check()) return performance.now() - started;
    assert.ok(performance.now() - started < withinMs, `${what}: not within ${withinMs} ms`);
    await sleep(5);
  }
}
