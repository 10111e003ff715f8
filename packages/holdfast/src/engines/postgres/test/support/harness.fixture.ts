import { type PostgresServer, processorTimeUs, Relay } from "@holdfast/servers";
import pg from "pg";
import type {
  Excuse,
  Harness,
  Misanswered,
  Relayed,
  TrueGrant,
} from "../../../../conformance/index.js";
import type { Engine, EngineTraits } from "../../../../engine.js";
import { garbled, SHAPES } from "../../../../test-support/sql/garbled.fixture.js";
import { POSTGRES_TRAITS, PostgresEngine } from "../../engine.js";
import { POSTGRES_DEFAULTS, SHEDLOCK_SCHEMA } from "../../options.js";
import { init } from "../../schema.js";

export interface ServerAddress {
  /**
   * The server on which the test reads the tables. Sessions of the test itself are never disturbed.
   */
  readonly server: PostgresServer;
  /** Where clients connect to, if not to the server itself. */
  readonly endpoint?: { readonly port: number; readonly url: string };
  readonly listen?: boolean;
}

/** Another kind of hold than rows. */
export interface HoldVariant {
  readonly traits: EngineTraits;
  /** The query of the URL. */
  readonly query: string;
  make(pool: pg.Pool, end: () => unknown): Engine & { open(limitMs: number): Promise<void> };
  readonly excuses: readonly Excuse[];
  /** Uses rows, with ShedLock's table beside them. */
  readonly shedlock?: boolean;
}

/** The harness of a PostgreSQL that is started only when the first law runs. */
export class PostgresHarness implements Harness {
  readonly name: string;
  readonly traits: EngineTraits;
  readonly watch: boolean;
  readonly queue: boolean;
  readonly excuses: readonly Excuse[];
  readonly age?: (resource: string, ms: number) => Promise<void>;
  readonly silence?: (resource: string, ms: number) => Promise<void>;
  readonly #variant: HoldVariant | null;
  readonly #schema: string;
  readonly #address: () => ServerAddress | undefined;
  readonly #relays = new Map<Engine, Relay>();
  readonly #pools = new Set<pg.Pool>();
  #admin: pg.Pool | null = null;
  #created: Promise<void> | null = null;

  constructor(
    name: string,
    address: () => ServerAddress | undefined,
    listen = true,
    variant?: HoldVariant,
  ) {
    this.name = name;
    this.#address = address;
    this.watch = listen;
    this.#variant = variant ?? null;
    const rows = variant === undefined || variant.shedlock === true;
    this.queue = rows;
    this.#schema = variant?.shedlock ? SHEDLOCK_SCHEMA : POSTGRES_DEFAULTS.schema;
    this.traits = variant?.traits ?? POSTGRES_TRAITS;
    this.excuses = variant?.excuses ?? [];
    // A session lock has no end that could be moved, and its waiters are not queued at the server.
    if (!rows) return;
    this.age = (resource, ms) => this.#age(resource, ms);
    this.silence = (resource, ms) => this.#silence(resource, ms);
  }

  /** Also read before the server is started: then it has only the scheme. */
  get url(): string {
    const address = this.#address();
    if (address === undefined) return "postgres://";
    const { server, endpoint, listen = true } = address;
    return `${(endpoint ?? server).url}?${this.#variant?.query ?? `listen=${listen}`}`;
  }

  get address(): ServerAddress {
    const address = this.#address();
    if (address === undefined) throw new Error("no server was started");
    return address;
  }

  get admin(): pg.Pool {
    this.#admin ??= quietPool({ port: this.address.server.port, max: 2 });
    return this.#admin;
  }

  async open(): Promise<Engine> {
    return (await this.#open()).engine;
  }

  async relayed(): Promise<Relayed> {
    const { engine, relay } = await this.#open();
    return { engine, hold: () => relay.hold(), deliver: () => relay.deliver() };
  }

  async misanswered(): Promise<Misanswered> {
    let shape: string | null = null;
    const { engine } = await this.#open(garblingClient(() => shape));
    const answerWith = (wrong: string | null) => {
      shape = wrong;
    };
    return { engine, shapes: SHAPES, answerWith };
  }

  async truth(resource: string): Promise<readonly TrueGrant[]> {
    const { rows } = await this.admin.query(this.#truthText(), [resource]);
    return (rows as { token: string; left_ms: string }[]).map(({ token, left_ms }) => {
      return { token: BigInt(token), remainingMs: Number(left_ms) };
    });
  }

  serverTimeUs(): number {
    return processorTimeUs(this.address.server.pid);
  }

  async reset(): Promise<void> {
    const shedlock = this.#variant?.shedlock ? { shedlock: "shedlock" } : {};
    this.#created ??= init(this.admin, shedlock);
    await this.#created;
    // In one statement. DELETE is cheaper than TRUNCATE for a few rows.
    const names = ["resources", "grants", "waiters", "tombstones", "advisory"];
    const texts = names.map((name) => `DELETE FROM ${this.#schema}.${name}`);
    if (this.#variant?.shedlock) texts.push("DELETE FROM shedlock");
    await this.admin.query(texts.join(";"));
  }

  async #open(Client: typeof pg.Client = pg.Client): Promise<{ engine: Engine; relay: Relay }> {
    const { server, endpoint, listen = true } = this.address;
    const relay = await Relay.start((endpoint ?? server).port);
    const pool = quietPool({ port: relay.port, max: 3, idleTimeoutMillis: 0, Client });
    this.#pools.add(pool);
    // Opens all sessions now, because laws count what is open before and after.
    const sessions = await Promise.all([1, 2, 3].map(() => pool.connect()));
    for (const session of sessions) session.release();
    const terms = { ...POSTGRES_DEFAULTS, listen };
    const end = () => this.#close(engine, pool);
    const engine: Engine & { open(limitMs: number): Promise<void> } =
      this.#variant?.make(pool, end) ?? new PostgresEngine(pool, terms, end);
    this.#relays.set(engine, relay);
    await engine.open(5_000);
    return { engine, relay };
  }

  /**
   * With ShedLock's table, whose row excludes others too, both must be alive. A session lock lasts
   * until its session has been silent for the longest ttl of all its grants, which is at least the
   * grant's own ttl.
   */
  #truthText(): string {
    const schema = this.#schema;
    const left = (end: string) =>
      `ceil(extract(epoch FROM ${end} - clock_timestamp()) * 1000) AS left_ms`;
    if (!this.queue) {
      return `SELECT a.token, ${left(`a.heard_at + ${schema}.ms(a.ttl_ms)`)}
        FROM ${schema}.advisory a WHERE a.resource = $1
         AND EXISTS (SELECT FROM ${schema}.advisory_pids(a.key) p WHERE p.pid = a.pid)`;
    }
    const theirs = `(s.lock_until AT TIME ZONE 'utc') - ${schema}.ms(g.delay_ms)`;
    const [end, table] = this.#variant?.shedlock
      ? [`least(g.expires_at, ${theirs})`, "JOIN shedlock s ON s.name = g.resource"]
      : ["g.expires_at", ""];
    return `SELECT g.token, ${left(end)} FROM ${schema}.grants g ${table}
      WHERE g.resource = $1 AND ${end} > clock_timestamp()`;
  }

  async #silence(resource: string, ms: number): Promise<void> {
    const schema = this.#schema;
    const earlier = `UPDATE ${schema}.waiters SET heard_at = heard_at - ${schema}.ms($2)`;
    await this.admin.query(`${earlier} WHERE resource = $1`, [resource, ms]);
  }

  async #age(resource: string, ms: number): Promise<void> {
    const schema = this.#schema;
    const earlier = `UPDATE ${schema}.grants SET expires_at = expires_at - ${schema}.ms($2)`;
    await this.admin.query(`${earlier} WHERE resource = $1`, [resource, ms]);
    if (!this.#variant?.shedlock) return;
    const row = `UPDATE shedlock SET lock_until = lock_until - ${schema}.ms($2) WHERE name = $1`;
    await this.admin.query(row, [resource, ms]);
  }

  async ageTombstones(_resource: string, ms: number): Promise<void> {
    const schema = this.#schema;
    await this.admin.query(`UPDATE ${schema}.tombstones SET until = until - ${schema}.ms($1)`, [
      ms,
    ]);
  }

  sever(engine: Engine): () => void {
    const relay = this.#relays.get(engine)!;
    relay.cut();
    return () => relay.mend();
  }

  restart(): Promise<void> {
    return this.address.server.restart();
  }

  async end(): Promise<void> {
    await Promise.all([...this.#pools].map((pool) => pool.end()));
    for (const relay of this.#relays.values()) await relay.close();
    await this.#admin?.end();
  }

  async #close(engine: Engine, pool: pg.Pool): Promise<void> {
    this.#pools.delete(pool);
    const relay = this.#relays.get(engine);
    this.#relays.delete(engine);
    await Promise.all([pool.end(), relay?.close()]);
  }
}

/** Returns the answers of routines in a wrong shape. */
function garblingClient(shape: () => string | null): typeof pg.Client {
  class GarblingClient extends pg.Client {
    override query(...args: unknown[]): never {
      const wrong = shape();
      const asked = (super.query as (...args: unknown[]) => Promise<pg.QueryResult>)(...args);
      if (!JSON.stringify(args[0]).includes("CALL ")) return asked as never;
      return asked.then((result) => {
        return { ...result, rows: garbled(result.rows, "answer", wrong) };
      }) as never;
    }
  }
  return GarblingClient as unknown as typeof pg.Client;
}

/** For the table of engines in the docs. */
export function harness(): Harness {
  return new PostgresHarness("postgres", () => undefined);
}

export function quietPool(options: pg.PoolConfig): pg.Pool {
  const local = { host: "127.0.0.1", user: "postgres", database: "postgres" };
  const pool = new pg.Pool({ ...local, connectionTimeoutMillis: 2_000, ...options });
  pool.on("error", () => {});
  return pool;
}
