import { EngineError } from "../../../errors.js";

/** The part of pg's Client that this engine needs. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult>;
  query(statement: PgStatement): Promise<PgResult>;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  /**
   * I: outside a transaction. T: inside one. E: inside one that has failed. Older clients lack this
   * method.
   */
  getTransactionStatus?(): string | null;
}

/** A statement with a name is parsed once per session. */
export interface PgStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface PgResult {
  // biome-ignore lint/suspicious/noExplicitAny: what a row is, its statement says
  readonly rows: any[];
}

/** A Client borrowed from its Pool. */
export interface PgPoolClient extends PgClient {
  /** With true or an error, the connection is closed and does not return to the pool. */
  release(broken?: Error | boolean): void;
}

/** The part of pg's Pool that this engine needs. */
export interface PgPool {
  connect(): Promise<PgPoolClient>;
  connect(got: (error: Error | undefined, client: PgPoolClient | undefined) => void): unknown;
  readonly totalCount: number;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

export interface PgNotice {
  readonly channel: string;
  readonly payload?: string | undefined;
}

/** A dedicated connection, created the way the pool creates its connections. */
export interface PgOwnClient {
  query(text: string, values?: unknown[]): Promise<PgResult>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (notice: PgNotice) => void): unknown;
  connect(): Promise<unknown>;
  end(): Promise<unknown>;
  unref?(): void;
  readonly connection?: { readonly stream?: { destroy?(): void } };
}

/** Creates more connections like those of a pool. Null for a single client. */
export function clientFactory(client: PgPool | PgClient): (() => PgOwnClient) | null {
  const pool = client as unknown as {
    readonly Client?: new (options: unknown) => PgOwnClient;
    readonly options?: object;
  };
  const { Client, options } = pool;
  if (Client === undefined || options === undefined) return null;
  // pg makes the password non-enumerable, so the options object is passed on without copying it.
  return () => new Client(options);
}

export function isPool(client: PgPool | PgClient): client is PgPool {
  return "totalCount" in client;
}

/**
 * pg stores the queries of a Client that was never connected, and sends them once it is. Callers
 * would get no answer until then, or ever. Objects that only look like pg's Client lack these
 * fields.
 */
export function refuseUnconnected(client: PgClient): void {
  const { _connecting, _connected } = client as {
    readonly _connecting?: unknown;
    readonly _connected?: unknown;
  };
  if (_connecting !== false || _connected !== false) return;
  throw new EngineError(
    "the Client of pg was never connected: await client.connect() before locks are used, or hand in a Pool",
    { effect: "none", retryable: false, reason: "unreachable" },
  );
}

/**
 * Borrows a session that has an error listener from the first moment. A promise would be too late:
 * one packet can both begin and end a session, and an "error" event without a listener ends the
 * process.
 */
export function borrow(pool: PgPool): Promise<PgPoolClient> {
  return new Promise((resolve, reject) => {
    const got = (client: PgPoolClient) => {
      client.on("error", ignoreError);
      resolve(client);
    };
    const promised = pool.connect((error, client) => {
      if (client === undefined) reject(error);
      else got(client);
    });
    // An object that only looks like pg's pool may not support callbacks.
    (promised as Promise<PgPoolClient> | undefined)?.then(got, reject);
  });
}

/** A broken session keeps its error listener, because it may emit more than one error. */
export function returnSession(session: PgPoolClient, broken = false): void {
  if (!broken) session.removeListener("error", ignoreError);
  session.release(broken);
}

/** The statement in flight fails with the same error, and reports it. */
function ignoreError(): void {}
