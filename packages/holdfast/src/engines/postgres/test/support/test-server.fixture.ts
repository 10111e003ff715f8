import {
  type PostgresOptions,
  type PostgresServer,
  type Relay,
  startPostgres,
} from "@holdfast/servers";
import pg from "pg";
import type { Locks } from "../../../../locks.js";
import {
  type DefineTests,
  describeWithServer,
  TestServer,
} from "../../../../test-support/test-server.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { init, type PostgresEngineOptions, postgresEngine } from "../../index.js";
import { quietPool } from "./harness.fixture.js";

export interface OpenOptions extends Omit<PostgresEngineOptions, "client"> {
  readonly port?: number;
  readonly pool?: pg.PoolConfig;
}

/** What one test opens on the server of its file, closed with the test. */
export class PostgresTestServer extends TestServer {
  readonly instance: PostgresServer;
  /** Sees everything; tests never disturb it. */
  readonly admin: pg.Pool;

  constructor(instance: PostgresServer) {
    super();
    this.instance = instance;
    this.admin = quietPool({ port: instance.port, max: 3 });
  }

  pool(options: pg.PoolConfig = {}): pg.Pool {
    const pool = quietPool({ port: this.instance.port, max: 4, ...options });
    this.closesClient(() => pool.end());
    return pool;
  }

  async client(): Promise<pg.Client> {
    const { port } = this.instance;
    const client = new pg.Client({ host: "127.0.0.1", user: "postgres", port });
    client.on("error", () => {});
    await client.connect();
    this.closesClient(() => client.end());
    return client;
  }

  engine({ port, pool, ...options }: OpenOptions = {}): ReturnType<typeof postgresEngine> {
    const client = this.pool({ ...(port === undefined ? {} : { port }), ...pool });
    return this.closesEngine(postgresEngine({ client, ...options }));
  }

  /** As another process would have it: its own pool and its own connection for notifications. */
  locks(options: OpenOptions = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  relay(): Promise<Relay> {
    return this.relayTo(this.instance.port);
  }

  /** Waits until this many waiters are queued at the server. */
  async untilWaiters(resource: string, count: number): Promise<void> {
    await until(`${count} wait for ${resource}`, async () => {
      const text = "SELECT count(*)::int AS n FROM holdfast.waiters WHERE resource = $1";
      return (await this.admin.query(text, [resource])).rows[0].n === count;
    });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.admin.end();
  }
}

/** Runs tests one after the other on one server, each with its own resource names. */
export function describeWithPostgres(
  options: PostgresOptions,
  define: DefineTests<PostgresTestServer>,
): void {
  const setup = {
    start: () => startPostgres(options),
    prepare: async ({ port }: PostgresServer) => {
      const pool = quietPool({ port });
      await init(pool);
      await pool.end();
    },
    open: (instance: PostgresServer) => new PostgresTestServer(instance),
  };
  describeWithServer(setup, define);
}
