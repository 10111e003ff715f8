import type { Held } from "./fencing/mark.js";
import { register, TABLE, transaction } from "./fencing/sqlite.js";
import { openSqlite, type Sqlite } from "./open-sqlite.js";

/**
 * Where the data lives: an SQLite file that also remembers, for each resource, the token that was
 * registered last. A holder that slept too long is refused, whatever it has read before.
 */
export class Invoices {
  readonly #database: Sqlite;

  constructor(path: string) {
    this.#database = openSqlite(path);
    this.#database.exec(`${TABLE}; CREATE TABLE invoices (id INTEGER PRIMARY KEY, due INTEGER)`);
  }

  add(id: number, due: number): void {
    this.#database.prepare("INSERT INTO invoices (id, due) VALUES (?, ?)").run(id, due);
  }

  /** Comes before reading. */
  async register(lease: Held): Promise<void> {
    register(this.#database, lease);
  }

  async due(id: number): Promise<number> {
    const row = this.#database.prepare("SELECT due FROM invoices WHERE id = ?").get(id);
    return (row as { due: number }).due;
  }

  /** Checks the token and writes, in one transaction. */
  async save(id: number, due: number, lease: Held): Promise<void> {
    transaction(this.#database, lease, () => {
      this.#database.prepare("UPDATE invoices SET due = ? WHERE id = ?").run(due, id);
    });
  }

  close(): void {
    this.#database.close();
  }
}
