import { FencedOutError, type Lease } from "holdfast";
import * as fence from "../fencing/sqlite.js";
import { openSqlite, type Sqlite } from "../open-sqlite.js";

/** How the shop uses tokens. */
export type Recipe = "compared" | "registered";

/**
 * The data, in its own SQLite file. Under either recipe there is one unit in stock. The lock does not
 * guard the data: the shop itself must refuse the token of a holder that comes too late.
 */
export class Shop {
  readonly #database: Sqlite;
  readonly #recipe: Recipe;

  constructor(path: string, recipe: Recipe) {
    this.#database = openSqlite(path);
    this.#recipe = recipe;
  }

  static build(path: string): void {
    const database = openSqlite(path);
    database.exec(`${fence.TABLE};
      CREATE TABLE stock (recipe TEXT PRIMARY KEY, units INTEGER, token INTEGER);
      CREATE TABLE sales (recipe TEXT, buyer TEXT);
      INSERT INTO stock VALUES ('compared', 1, 0), ('registered', 1, 0);`);
    database.close();
  }

  /** Reads what is in stock. The token is registered first, where that is the recipe. */
  enter(lease: Lease): number {
    if (this.#recipe === "registered") fence.register(this.#database, lease);
    const row = this.#database
      .prepare("SELECT units FROM stock WHERE recipe = ?")
      .get(this.#recipe) as { units: number };
    return row.units;
  }

  /** Writes what follows from the units that were read. Gives "accepted" or "refused". */
  sell(lease: Lease, units: number, buyer: string): string {
    const sell = this.#recipe === "registered" ? fence.transaction : compareAtTheWrite;
    try {
      sell(this.#database, lease, () => {
        this.#run("UPDATE stock SET units = ? WHERE recipe = ?", units - 1, this.#recipe);
        this.#run("INSERT INTO sales VALUES (?, ?)", this.#recipe, buyer);
      });
      return "accepted";
    } catch (error) {
      if (!(error instanceof FencedOutError)) throw error;
      return "refused";
    }
  }

  sold(): number {
    const sales = "SELECT count(*) AS count FROM sales WHERE recipe = ?";
    return (this.#database.prepare(sales).get(this.#recipe) as { count: number }).count;
  }

  close(): void {
    this.#database.close();
  }

  #run(sql: string, ...values: (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
  }
}

/** What does not suffice: the greatest token that has *written* is compared, in the same transaction. */
function compareAtTheWrite(database: Sqlite, { token }: Lease, write: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    const { changes } = database
      .prepare("UPDATE stock SET token = ?1 WHERE recipe = 'compared' AND token <= ?1")
      .run(String(token));
    if (Number(changes) === 0) throw new FencedOutError(`token ${token} is stale`);
    write();
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}
