import { systemClock } from "../../../core/runtime/clock.js";
import { SessionPool } from "../../../engine-kit/sql/session-pool.js";
import { EngineError } from "../../../errors.js";
import { emit } from "../../../events.js";
import {
  borrow,
  isPool,
  type PgClient,
  type PgPool,
  type PgPoolClient,
  type PgStatement,
  refuseUnconnected,
  returnSession,
} from "./client.js";
import {
  failureOf,
  inTransaction,
  isInTransaction,
  isStatementForgotten,
  lost,
  notConnected,
} from "./failure.js";
import { SerialExecutor } from "./serial-executor.js";

// This many sessions in a row may have been returned to the pool with an open transaction.
const MAX_TRIES = 10;

/**
 * The statement that calls a routine of procedures.sql. `routine` is like "name($1, $2)"; the call
 * returns one column.
 */
export function callOf(schema: string, routine: string): string {
  return `CALL "${schema}".call_${routine.slice(0, -1)}, NULL)`;
}

/** Sends statements over the sessions of a pool, or over the session of a single client. */
export class Sessions {
  readonly #client: PgPool | PgClient;
  readonly #serial = new SerialExecutor();
  #pool: SessionPool<PgPoolClient> | null = null;
  /** False once the server did not know a prepared statement any more. */
  #usePreparedStatements = true;
  readonly #onError = (error: Error) =>
    emit("failed", () => ({ during: "connection", error: failureOf(error).error }));

  constructor(client: PgPool | PgClient) {
    this.#client = client;
    // Sessions can break while idle too. Without a listener, that error would end the process.
    client.on("error", this.#onError);
  }

  /** One statement, one round trip. limitMs: how long the caller waits for the answer. */
  async query<Row>(
    text: string,
    values: unknown[],
    limitMs: number,
    name?: string,
  ): Promise<Row[]> {
    const statement = { text, values, ...(name === undefined ? {} : { name }) };
    const client = this.#client;
    const deadline = systemClock.now() + limitMs;
    if (!isPool(client)) {
      return this.#serial.run(() => {
        if (systemClock.now() >= deadline) throw busy("the client was busy with something else");
        refuseUnconnected(client);
        // The server would refuse the statement, and the user's transaction would fail with it.
        if (hasOpenTransaction(client)) throw inTransaction();
        return this.#send(client, statement, deadline);
      });
    }
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#sendFrom<Row>(client, statement, deadline);
      } catch (error) {
        if (!isInTransaction(error) || attempt === MAX_TRIES) throw error;
        emit("failed", () => ({ during: "connection", error: inTransaction() }));
      }
    }
  }

  async #sendFrom<Row>(pool: PgPool, statement: PgStatement, deadline: number): Promise<Row[]> {
    const session = await this.#borrow(pool, deadline - systemClock.now());
    try {
      const rows = await this.#send<Row>(session, statement, deadline);
      returnSession(session);
      return rows;
    } catch (error) {
      // An error from the server leaves the session usable; any other error has broken it. A
      // session inside somebody else's transaction is closed, and the server rolls that transaction
      // back.
      const isBroken = (error as { severity?: string }).severity !== "ERROR";
      returnSession(session, isBroken || isInTransaction(error));
      throw error;
    }
  }

  async #borrow(pool: PgPool, limitMs: number): Promise<PgPoolClient> {
    this.#pool ??= new SessionPool(() => borrow(pool), returnSession, "PostgreSQL");
    try {
      return await this.#pool.borrow(limitMs);
    } catch (error) {
      throw notConnected(error);
    }
  }

  /**
   * Users reset the sessions of their pool (DISCARD ALL), but the client still believes that its
   * statements are prepared. The server has then done nothing, so the statement is sent again
   * without a name. From then on no statement has a name, because the reset will happen again.
   */
  async #send<Row>(client: PgClient, statement: PgStatement, deadline: number): Promise<Row[]> {
    const { text, values } = statement;
    if (statement.name === undefined || !this.#usePreparedStatements) {
      return this.#ask(client, { text, values }, deadline);
    }
    try {
      return await this.#ask(client, statement, deadline);
    } catch (error) {
      if (!isStatementForgotten(error)) throw error;
      this.#usePreparedStatements = false;
      return this.#ask(client, { text, values }, deadline);
    }
  }

  #ask<Row>(client: PgClient, statement: PgStatement, deadline: number): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      const silent = () => reject(lost("the statement is still under way"));
      const timer = systemClock.timer(deadline - systemClock.now(), silent, false);
      client
        .query(statement)
        .then(({ rows }) => resolve(rows as Row[]), reject)
        .finally(() => timer.cancel());
    });
  }

  close(): void {
    this.#client.removeListener("error", this.#onError);
  }
}

function hasOpenTransaction(client: PgClient): boolean {
  return /^[TE]$/.test(client.getTransactionStatus?.() ?? "");
}

function busy(message: string): EngineError {
  return new EngineError(message, { effect: "none", retryable: true });
}
