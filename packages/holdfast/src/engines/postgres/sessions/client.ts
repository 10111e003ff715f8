import { EngineError } from "../../../errors.js";

/** The part of pg's Client that this engine needs. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<PgResult>;
  query(statement: PgStatement): Promise<PgResult>;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
  /** I outside a transaction, T inside one, E inside one that has failed. Older clients do not say. */
  getTransactionStatus?(): string | null;
}

/** With a name it is parsed once a session. */
export interface PgStatement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

export interface PgResult {
  // biome-ignore lint/suspicious/noExplicitAny: what a row is, its statement says
  readonly rows: any[];
}

/** A Client that its Pool has lent. */
export interface PgPoolClient extends PgClient {
  /** With true or an error the connection is closed instead of going back. */
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

/** A connection of our own, made as the pool makes its own. */
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

/** How to make one more connection like those of a pool. Null for a single client. */
export function clientFactory(client: PgPool | PgClient): (() => PgOwnClient) | null {
  const pool = client as unknown as {
    readonly Client?: new (options: unknown) => PgOwnClient;
    readonly options?: object;
  };
  const { Client, options } = pool;
  if (Client === undefined || options === undefined) return null;
  // pg hides the password from enumeration, so the options are handed on as they are.
  return () => new Client(options);
}

export function isPool(client: PgPool | PgClient): client is PgPool {
  return "totalCount" in client;
}

/**
 * pg keeps what is asked of a Client that was never connected, and asks when it is: nobody would be answered
 * until then, or ever. What only looks like pg's Client does not say.
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
 * Lends a session that is listened to from the first moment. A promise would be too late: a session
 * may be ended by the very packet that begins it, and an error that nobody hears ends the process.
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
    // What only looks like pg's pool may not know of callbacks.
    (promised as Promise<PgPoolClient> | undefined)?.then(got, reject);
  });
}

/** A broken one goes on being listened to: it may have more than one thing to say. */
export function returnSession(session: PgPoolClient, broken = false): void {
  if (!broken) session.removeListener("error", ignoreError);
  session.release(broken);
}

/** The statement under way fails as well, and tells. */
function ignoreError(): void {}
