import type { SqlClient, Statement, Value } from "./client.js";
import type { Host } from "./host.js";
import { sql } from "./sql.gen.js";

type Name = keyof typeof sql;

/** The statements of sql/ on one connection, with who runs them and at which instant. */
export class Tables {
  /** The instant of the transaction, by the host's clock. */
  now = 0;
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

  get<T>(name: Name, ...params: Value[]): T | null {
    return (this.#statement(name).get(...params) as T | undefined) ?? null;
  }

  all<T>(name: Name, ...params: Value[]): T[] {
    return this.#statement(name).all(...params) as T[];
  }

  /** How many rows it changed. */
  run(name: Name, ...params: Value[]): number {
    return Number(this.#statement(name).run(...params).changes);
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
