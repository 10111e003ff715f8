import { type MariadbServer, Relay } from "@holdfast/servers";
import mysql from "mysql2/promise";
import type {
  Excuse,
  Harness,
  Misanswered,
  Relayed,
  TrueGrant,
} from "../../../../conformance/index.js";
import type { Engine, EngineTraits } from "../../../../engine.js";
import { garbled, SHAPES } from "../../../../test-support/sql/garbled.fixture.js";
import { MYSQL_TRAITS, MysqlEngine, SHEDLOCK_TRAITS } from "../../engine.js";
import { type MysqlHold, type MysqlTerms, resolveMysql } from "../../options.js";
import { init } from "../../schema.js";
import type { MysqlConnection, MysqlPool } from "../../sessions/client.js";

/**
 * The harness of a MariaDB that is started only when the first law runs. It does not offer the
 * server's time: InnoDB purges in the background what earlier operations left. crowd.test.ts
 * counts rows instead.
 */
export class MysqlHarness implements Harness {
  readonly name: string;
  readonly traits: EngineTraits;
  readonly watch = false;
  readonly excuses: readonly Excuse[];
  readonly #terms: MysqlTerms;
  readonly #server: () => MariadbServer | undefined;
  readonly #relays = new Map<Engine, Relay>();
  readonly #pools = new Set<mysql.Pool>();
  #admin: mysql.Pool | null = null;
  #created: Promise<void> | null = null;

  constructor(
    server: () => MariadbServer | undefined,
    hold: MysqlHold = "rows",
    excuses: readonly Excuse[] = [],
  ) {
    this.#server = server;
    this.#terms = resolveMysql({ hold });
    this.name = hold === "rows" ? "mysql" : "mysql with ShedLock";
    this.traits = hold === "rows" ? MYSQL_TRAITS : SHEDLOCK_TRAITS;
    this.excuses = excuses;
  }

  get url(): string {
    const server = this.#server();
    return server === undefined ? "mysql://" : `${server.url}?hold=${this.#terms.hold}`;
  }

  get server(): MariadbServer {
    const server = this.#server();
    if (server === undefined) throw new Error("no server was started");
    return server;
  }

  get admin(): mysql.Pool {
    this.#admin ??= localPool({ port: this.server.port });
    return this.#admin;
  }

  async open(): Promise<Engine> {
    return (await this.#open((pool) => pool)).engine;
  }

  async relayed(): Promise<Relayed> {
    const { engine, relay } = await this.#open((pool) => pool);
    return { engine, hold: () => relay.hold(), deliver: () => relay.deliver() };
  }

  async misanswered(): Promise<Misanswered> {
    let shape: string | null = null;
    const { engine } = await this.#open((pool) => garbling(pool, () => shape));
    const answerWith = (wrong: string | null) => {
      shape = wrong;
    };
    return { engine, shapes: SHAPES, answerWith };
  }

  /** With ShedLock's table, whose row excludes others too, both must be alive. */
  async truth(resource: string): Promise<readonly TrueGrant[]> {
    const { prefix, hold } = this.#terms;
    const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))";
    const theirs = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', s.lock_until)
      - g.delay_ms * 1000`;
    const [end, table] =
      hold === "rows"
        ? ["g.expires_us", ""]
        : [`LEAST(g.expires_us, ${theirs})`, "JOIN shedlock s ON s.name = g.resource"];
    const text = `SELECT CAST(g.token AS CHAR) AS token, CEIL((${end} - ${now}) / 1000) AS leftMs
      FROM ${prefix}grants g ${table} WHERE g.resource = ? HAVING leftMs > 0`;
    const [rows] = await this.admin.query(text, [Buffer.from(resource)]);
    return (rows as { token: string; leftMs: number | string }[]).map(({ token, leftMs }) => {
      return { token: BigInt(token), remainingMs: Number(leftMs) };
    });
  }

  async silence(resource: string, ms: number): Promise<void> {
    const earlier = `UPDATE ${this.#terms.prefix}waiters SET heard_us = heard_us - ?`;
    await this.admin.query(`${earlier} WHERE resource = ?`, [ms * 1_000, Buffer.from(resource)]);
  }

  async reset(): Promise<void> {
    const { prefix, hold } = this.#terms;
    this.#created ??= init(this.admin, hold === "rows" ? {} : { shedlock: "shedlock" });
    await this.#created;
    for (const name of ["resources", "grants", "fences", "waiters", "tombstones"]) {
      await this.admin.query(`DELETE FROM ${prefix}${name}`);
    }
    if (hold === "shedlock") await this.admin.query("DELETE FROM shedlock");
  }

  async age(resource: string, ms: number): Promise<void> {
    const { prefix, hold } = this.#terms;
    const earlier = `UPDATE ${prefix}grants SET expires_us = expires_us - ? WHERE resource = ?`;
    await this.admin.query(earlier, [ms * 1_000, Buffer.from(resource)]);
    if (hold !== "shedlock") return;
    const row =
      "UPDATE shedlock SET lock_until = lock_until - INTERVAL ? MICROSECOND WHERE name = ?";
    await this.admin.query(row, [ms * 1_000, resource]);
  }

  async ageTombstones(_resource: string, ms: number): Promise<void> {
    const earlier = `UPDATE ${this.#terms.prefix}tombstones SET until_us = until_us - ?`;
    await this.admin.query(earlier, [ms * 1_000]);
  }

  sever(engine: Engine): () => void {
    const relay = this.#relays.get(engine)!;
    relay.cut();
    return () => relay.mend();
  }

  restart(): Promise<void> {
    return this.server.restart();
  }

  async end(): Promise<void> {
    await Promise.all([...this.#pools].map((pool) => pool.end()));
    for (const relay of this.#relays.values()) await relay.close();
    await this.#admin?.end();
  }

  async #open(wrap: (pool: mysql.Pool) => MysqlPool): Promise<{ engine: Engine; relay: Relay }> {
    const relay = await Relay.start(this.server.port);
    const pool = localPool({ port: relay.port, connectionLimit: 3 });
    this.#pools.add(pool);
    // Opens all sessions now, because laws count what is open before and after.
    const sessions = await Promise.all([1, 2, 3].map(() => pool.getConnection()));
    for (const session of sessions) session.release();
    const engine = new MysqlEngine(wrap(pool), this.#terms, () => this.#close(engine, pool));
    this.#relays.set(engine, relay);
    await engine.open(5_000);
    return { engine, relay };
  }

  async #close(engine: Engine, pool: mysql.Pool): Promise<void> {
    this.#pools.delete(pool);
    const relay = this.#relays.get(engine);
    this.#relays.delete(engine);
    await Promise.all([pool.end().catch(() => {}), relay?.close()]);
  }
}

/** Returns the answers of calls in a wrong shape. */
function garbling(pool: MysqlPool, shape: () => string | null): MysqlPool {
  return {
    async getConnection() {
      const session: MysqlConnection = await pool.getConnection();
      return {
        async query(text) {
          const wrong = shape();
          const [results, fields] = await session.query(text);
          const [rows, ...end] = results as unknown[];
          return [[garbled(rows, "answer", wrong), ...end], fields];
        },
        release: () => session.release(),
        destroy: () => session.destroy(),
      };
    },
  };
}

/** For the table of engines in the docs. */
export function harness(): Harness {
  return new MysqlHarness(() => undefined);
}

export function localPool(options: mysql.PoolOptions): mysql.Pool {
  const local = { host: "127.0.0.1", user: "root", database: "holdfast_test" };
  return mysql.createPool({ ...local, connectTimeout: 10_000, ...options });
}
