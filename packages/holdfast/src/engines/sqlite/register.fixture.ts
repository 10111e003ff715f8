import { EngineError, FencedOutError } from "../../errors.js";
import type { SqlClient } from "./client.js";
import { openDatabase } from "./database.js";
import { resolveSqlite } from "./options.js";

const SCHEMA = `
  CREATE TABLE register (id INTEGER PRIMARY KEY, value INTEGER, token INTEGER);
  CREATE TABLE writes (seq INTEGER PRIMARY KEY, token INTEGER, value INTEGER);
  INSERT INTO register VALUES (1, 0, 0);`;
const READ = "UPDATE register SET token = ?1 WHERE token <= ?1 RETURNING value";
const WRITE = "UPDATE register SET token = ?1, value = ?2 WHERE token <= ?1";

export interface Write {
  readonly token: number;
  readonly value: number;
}

/**
 * One number in a row, which refuses whoever comes with a smaller token than it has seen. Reading
 * raises the mark too: else a stale writer could slip in between its successor's read and write.
 */
export class Register {
  readonly #client: SqlClient;

  private constructor(client: SqlClient) {
    this.#client = client;
    client.exec("PRAGMA busy_timeout = 10000");
  }

  static async create(path: string): Promise<void> {
    const register = await Register.open(path);
    register.#client.exec(SCHEMA);
    register.close();
  }

  /** Through the engine's own binding: a second SQLite in one process would drop its locks. */
  static async open(path: string): Promise<Register> {
    for (let tries = 0; ; tries++) {
      try {
        return new Register(await openDatabase(resolveSqlite({ path }), "quick"));
      } catch (error) {
        // Others write to it all the time; the engine waits for its turn, and so does this.
        if (!(error instanceof EngineError && error.retryable) || tries === 500) throw error;
      }
      await new Promise((again) => setTimeout(again, 10));
    }
  }

  read(resource: string, token: bigint): number {
    const row = this.#client.prepare(READ).get(Number(token)) as { value: number } | undefined;
    if (row === undefined) throw this.#fencedOut(resource, token);
    return row.value;
  }

  write(resource: string, token: bigint, value: number): void {
    this.#client.exec("BEGIN IMMEDIATE");
    const { changes } = this.#client.prepare(WRITE).run(Number(token), value);
    if (Number(changes) > 0) {
      this.#client
        .prepare("INSERT INTO writes (token, value) VALUES (?, ?)")
        .run(Number(token), value);
    }
    this.#client.exec("COMMIT");
    if (Number(changes) === 0) throw this.#fencedOut(resource, token);
  }

  /** What was accepted, in order. */
  history(): Write[] {
    return this.#client.prepare("SELECT token, value FROM writes ORDER BY seq").all() as Write[];
  }

  close(): void {
    this.#client.close();
  }

  #fencedOut(resource: string, token: bigint): FencedOutError {
    const seen = this.#client.prepare("SELECT token FROM register").get() as { token: number };
    return new FencedOutError(`token ${token} came after ${seen.token}`, { resource });
  }
}
