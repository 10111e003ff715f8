import type { SqlClient, Statement, Value } from "../file/client.js";
import type { Host } from "../file/host.js";
import { exactChanges, exactRow, exactRows, otherShape, type Reading } from "./shapes.js";
import { sql } from "./sql.gen.js";

type Name = keyof typeof sql;

/** The statements of sql/ on one connection, with who runs them and at which instant. */
export class Tables {
  /** The instant of the transaction, by the host's clock. */
  now = 0;
  /** How many this connection has written down, for sweeping them now and then. */
  sightings = 0;
  readonly host: Host;
  /** The id of this engine among all that use the file. */
  readonly self: string;
  readonly #client: SqlClient;
  readonly #statements = new Map<Name, Statement>();

  constructor(client: SqlClient, host: Host, self: string) {
    this.#client = client;
    this.host = host;
    this.self = self;
  }

  get<T>(name: Reading, ...params: Value[]): T | null {
    const row = this.#statement(name).get(...params);
    return row === undefined ? null : exactRow<T>(name, row);
  }

  /** Of a statement that always gives a row. */
  one<T>(name: Reading, ...params: Value[]): T {
    const row = this.get<T>(name, ...params);
    if (row === null) throw otherShape(name);
    return row;
  }

  all<T>(name: Reading, ...params: Value[]): T[] {
    return exactRows<T>(name, this.#statement(name).all(...params));
  }

  /** How many rows it changed. */
  run(name: Name, ...params: Value[]): number {
    return exactChanges(name, this.#statement(name).run(...params));
  }

  #statement(name: Name): Statement {
    let statement = this.#statements.get(name);
    if (statement === undefined) {
      statement = this.#client.prepare(sql[name]);
      this.#statements.set(name, statement);
    }
    return statement;
  }
}
