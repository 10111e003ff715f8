import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type MariadbOptions, type MariadbServer, startMariadb } from "@holdfast/servers";
import type mysql from "mysql2/promise";
import { callNow } from "../../call.fixture.js";
import type { Claim } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { Locks } from "../../locks.js";
import { localPool } from "./harness.fixture.js";
import { createSchema, type MysqlEngineOptions, mysqlEngine } from "./index.js";

export interface OpenOptions extends Omit<MysqlEngineOptions, "client"> {
  readonly pool?: mysql.PoolOptions;
  /** In place of a pool of its own. */
  readonly client?: mysql.Pool;
}

/** What one play opens on the server of its file, closed with it. */
export class Ground implements AsyncDisposable {
  readonly server: MariadbServer;
  /** Sees everything and is never disturbed. */
  readonly admin: mysql.Pool;
  readonly #closers: (() => unknown)[] = [];

  constructor(server: MariadbServer) {
    this.server = server;
    this.admin = localPool({ port: server.port, multipleStatements: true });
  }

  pool(options: mysql.PoolOptions = {}): mysql.Pool {
    const pool = localPool({ port: this.server.port, connectionLimit: 4, ...options });
    this.#closers.unshift(() => pool.end());
    return pool;
  }

  engine({ pool, client, ...options }: OpenOptions = {}): ReturnType<typeof mysqlEngine> {
    const engine = mysqlEngine({ client: client ?? this.pool(pool), ...options });
    this.#closers.unshift(() => engine.close());
    return engine;
  }

  locks(options: OpenOptions = {}): Locks {
    const locks = new Locks(this.engine(options));
    this.#closers.unshift(() => locks.close());
    return locks;
  }

  /** One of the user's own, for transactions. */
  async connection(): Promise<mysql.PoolConnection> {
    const connection = await this.pool({ connectionLimit: 1 }).getConnection();
    this.#closers.unshift(() => connection.destroy());
    return connection;
  }

  /** What clients have sent to the server so far, by its own count. */
  async statements(): Promise<number> {
    const [rows] = await this.admin.query("SHOW GLOBAL STATUS LIKE 'Questions'");
    return Number((rows as { Value: string }[])[0]!.Value);
  }

  async count(table: string, where = "1"): Promise<number> {
    const text = `SELECT COUNT(*) AS n FROM holdfast_${table} WHERE ${where}`;
    return Number(((await this.admin.query(text))[0] as { n: number }[])[0]!.n);
  }

  async untilWaiters(resource: string, count: number): Promise<void> {
    await until(
      `${count} wait for ${resource}`,
      async () => (await this.count("waiters", `resource = '${resource}'`)) === count,
    );
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
  options: MariadbOptions,
  define: (play: (title: string, part: (ground: Ground) => Promise<void>) => void) => void,
): void {
  let server: MariadbServer;
  before(async () => {
    server = await startMariadb(options);
    const pool = localPool({ port: server.port });
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

/** A table with so many numbers from 1 on, in a column `seq`. */
export function numbers(count: number): string {
  const list = `CONCAT('[', REPEAT('0,', ${count - 1}), '0]')`;
  return `JSON_TABLE(${list}, '$[*]' COLUMNS (seq FOR ORDINALITY)) numbers`;
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
