import { importPeer } from "../../../core/input/import-peer.js";
import { EngineError, MissingPeerError, UsageError } from "../../../errors.js";
import type { EngineUrl } from "../../../url.js";
import type { MysqlConnection, MysqlPool } from "./client.js";
import { notConnected } from "./failure.js";

export interface Opened {
  readonly pool: MysqlPool;
  /**
   * From now on a held lease alone does not keep the process alive; a call has a timer that does.
   */
  unrefConnections(): void;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;

interface OwnPool extends MysqlPool {
  on(event: "connection", listener: (connection: RawConnection) => void): unknown;
  end(): Promise<void>;
}

type MysqlModule = { readonly default?: MysqlModule; createPool(options: object): OwnPool };

/** Opens a pool for a URL. */
export async function openFromUrl(url: EngineUrl, connectionLimit: number): Promise<Opened> {
  const address = addressOf(url);
  const { createPool } = await loadMysql();
  const pool = createPool({
    ...address,
    ...{ connectionLimit, maxIdle: connectionLimit, connectTimeout: CONNECT_TIMEOUT_MS },
    ...{ enableKeepAlive: true, supportBigNumbers: true },
  });
  const close = () => pool.end();
  let first: MysqlConnection;
  try {
    first = await pool.getConnection();
  } catch (error) {
    await close();
    const { message, retryable, reason, cause } = notConnected(error) as EngineError;
    const says = reason === "no-database" ? `there is no database "${address.database}"` : message;
    throw new EngineError(`database at ${address.host}:${address.port}: ${says}`, {
      ...{ effect: "none", retryable, reason, cause },
    });
  }
  first.release();
  const unrefConnections = () => {
    unref((first as unknown as { connection: RawConnection }).connection);
    pool.on("connection", unref);
  };
  return { pool, unrefConnections, close };
}

interface RawConnection {
  readonly stream?: { unref(): void };
}

function unref(connection: RawConnection): void {
  connection.stream?.unref();
}

function addressOf({ scheme, hosts, path, username, password, params }: EngineUrl) {
  const [first, ...more] = hosts;
  if (first === undefined || more.length > 0) {
    throw new UsageError(
      `${scheme}:// takes one host, like "${scheme}://app@127.0.0.1:3306/database"`,
    );
  }
  const database = path.replace(/^\//, "");
  if (database === "" || database.includes("/")) {
    throw new UsageError(`the path of a ${scheme}:// URL is the name of a database, got "${path}"`);
  }
  const tls = params.get("tls") ?? "false";
  if (tls !== "true" && tls !== "false") {
    throw new UsageError(`tls is "${tls}"; it is true or false`);
  }
  return {
    ...{ host: first.host, port: first.port ?? 3306, database },
    ...(username === null ? {} : { user: username }),
    ...(password === null ? {} : { password }),
    ...(tls === "true" ? { ssl: {} } : {}),
  };
}

async function loadMysql(): Promise<MysqlModule> {
  const module = await importPeer<MysqlModule>("mysql2/promise");
  if (module === null) {
    throw new MissingPeerError('"mysql2" is not installed. Run: npm install mysql2');
  }
  return module.createPool === undefined ? module.default! : module;
}
