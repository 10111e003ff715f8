import { importPeer } from "../../../core/input/import-peer.js";
import { EngineError, MissingPeerError, UsageError } from "../../../errors.js";
import { emit } from "../../../events.js";
import type { EngineUrl } from "../../../url.js";
import { borrow, type PgPool, returnSession } from "./client.js";
import { failureOf, notConnected } from "./failure.js";

export interface Opened {
  readonly pool: PgPool;
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 5_000;

type PgModule = {
  readonly default?: PgModule;
  readonly Pool: new (options: object) => PgPool & { end(): Promise<void> };
};

/** Opens a pool for a URL. */
export async function openFromUrl(url: EngineUrl, max: number): Promise<Opened> {
  const options = addressOf(url);
  const { Pool } = await loadPg();
  const pool = new Pool({
    ...options,
    ...{ max, connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true },
    // A held lease alone does not keep a process alive; a statement in flight does.
    allowExitOnIdle: true,
    application_name: "holdfast",
  });
  const onError = (error: Error) =>
    emit("failed", () => ({ during: "connection", error: failureOf(error).error }));
  pool.on("error", onError);
  const close = () => pool.end();
  try {
    returnSession(await borrow(pool));
    return { pool, close };
  } catch (error) {
    await close();
    const at = `${options.host}:${options.port}`;
    const { message, retryable, reason, cause } = notConnected(error) as EngineError;
    const says = reason === "no-database" ? `there is no database "${options.database}"` : message;
    throw new EngineError(`PostgreSQL at ${at}: ${says}`, {
      ...{ effect: "none", retryable, reason, cause },
    });
  }
}

function addressOf({ scheme, hosts, path, username, password, params }: EngineUrl) {
  const [first, ...more] = hosts;
  if (first === undefined || more.length > 0) {
    throw new UsageError(
      `${scheme}:// takes one host, like "${scheme}://app@127.0.0.1:5432/database"`,
    );
  }
  const database = path.replace(/^\//, "");
  if (database === "" || database.includes("/")) {
    throw new UsageError(`the path of a ${scheme}:// URL is the name of a database, got "${path}"`);
  }
  const tls = params.get("tls") ?? "false";
  if (tls !== "true" && tls !== "false")
    throw new UsageError(`tls is "${tls}"; it is true or false`);
  return {
    ...{ host: first.host, port: first.port ?? 5432, database },
    ...(username === null ? {} : { user: username }),
    ...(password === null ? {} : { password }),
    ...(tls === "true" ? { ssl: true } : {}),
  };
}

async function loadPg(): Promise<PgModule> {
  const module = await importPeer<PgModule>("pg");
  if (module === null) throw new MissingPeerError('"pg" is not installed. Run: npm install pg');
  return module.Pool === undefined ? module.default! : module;
}
