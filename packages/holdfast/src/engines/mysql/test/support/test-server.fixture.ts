import { type MariadbOptions, type MariadbServer, startMariadb } from "@holdfast/servers";
import type mysql from "mysql2/promise";
import type { Locks } from "../../../../locks.js";
import {
  type DefineTests,
  describeWithServer,
  TestServer,
} from "../../../../test-support/test-server.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { init, type MysqlEngineOptions, mysqlEngine } from "../../index.js";
import { localPool } from "./harness.fixture.js";

export interface OpenOptions extends Omit<MysqlEngineOptions, "client"> {
  readonly pool?: mysql.PoolOptions;
  /** Used instead of a new pool. */
  readonly client?: mysql.Pool;
}

/** What one test opens on the server of its file, closed with the test. */
export class MysqlTestServer extends TestServer {
  readonly instance: MariadbServer;
  /** Sees everything; tests never disturb it. */
  readonly admin: mysql.Pool;

  constructor(instance: MariadbServer) {
    super();
    this.instance = instance;
    this.admin = localPool({ port: instance.port, multipleStatements: true });
  }

  pool(options: mysql.PoolOptions = {}): mysql.Pool {
    const pool = localPool({ port: this.instance.port, connectionLimit: 4, ...options });
    this.closesClient(() => pool.end());
    return pool;
  }

  engine({ pool, client, ...options }: OpenOptions = {}): ReturnType<typeof mysqlEngine> {
    return this.closesEngine(mysqlEngine({ client: client ?? this.pool(pool), ...options }));
  }

  locks(options: OpenOptions = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  /** A connection of the user, for transactions. */
  async connection(): Promise<mysql.PoolConnection> {
    const connection = await this.pool({ connectionLimit: 1 }).getConnection();
    this.closesClient(() => connection.destroy());
    return connection;
  }

  /** The number of statements sent to the server so far, by its own count. */
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

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.admin.end();
  }
}

/** Runs tests one after the other on one server, each with its own resource names. */
export function describeWithMysql(
  options: MariadbOptions,
  define: DefineTests<MysqlTestServer>,
): void {
  const setup = {
    start: () => startMariadb(options),
    prepare: async ({ port }: MariadbServer) => {
      const pool = localPool({ port });
      await init(pool);
      await pool.end();
    },
    open: (instance: MariadbServer) => new MysqlTestServer(instance),
  };
  describeWithServer(setup, define);
}

/** A table with the numbers from 1 to count, in a column `seq`. */
export function numbers(count: number): string {
  const list = `CONCAT('[', REPEAT('0,', ${count - 1}), '0]')`;
  return `JSON_TABLE(${list}, '$[*]' COLUMNS (seq FOR ORDINALITY)) numbers`;
}
