import type { PreparedStatement, SqlClient, Value } from "../file/client.js";
import type { ProcessIdentity } from "../file/process-identity.js";
import {
  exactChanges,
  exactRow,
  exactRows,
  type ReadStatement,
  unexpectedShape,
} from "./shapes.js";
import { sql } from "./sql.gen.js";

type StatementName = keyof typeof sql;

/** The statements of sql/ on one connection, with the engine that runs them and the instant. */
export class Statements {
  /** The instant of the transaction, by the host's clock. */
  now = 0;
  /** How many sightings this connection has written: they are swept once in a while. */
  sightings = 0;
  readonly identity: ProcessIdentity;
  /** The id of this engine in the table of peers. */
  readonly self: string;
  readonly #client: SqlClient;
  readonly #prepared = new Map<StatementName, PreparedStatement>();

  constructor(client: SqlClient, identity: ProcessIdentity, self: string) {
    this.#client = client;
    this.identity = identity;
    this.self = self;
  }

  get<T>(name: ReadStatement, ...params: Value[]): T | null {
    const row = this.#statement(name).get(...params);
    return row === undefined ? null : exactRow<T>(name, row);
  }

  /** For a statement that always returns a row. */
  one<T>(name: ReadStatement, ...params: Value[]): T {
    const row = this.get<T>(name, ...params);
    if (row === null) throw unexpectedShape(name);
    return row;
  }

  all<T>(name: ReadStatement, ...params: Value[]): T[] {
    return exactRows<T>(name, this.#statement(name).all(...params));
  }

  /** Returns how many rows the statement changed. */
  run(name: StatementName, ...params: Value[]): number {
    return exactChanges(name, this.#statement(name).run(...params));
  }

  #statement(name: StatementName): PreparedStatement {
    let statement = this.#prepared.get(name);
    if (statement === undefined) {
      statement = this.#client.prepare(sql[name]);
      this.#prepared.set(name, statement);
    }
    return statement;
  }
}
