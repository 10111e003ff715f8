import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Child } from "../../../../test-support/child.fixture.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";

/**
 * A folder for one test, with its database file and child processes. All are removed after the
 * test.
 */
export class SqliteTestServer implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  readonly path = join(this.folder, "locks.db");
  readonly url = `sqlite:${this.path}`;
  readonly #children: Child[] = [];

  /**
   * Runs one statement through the engine's own binding: a second SQLite in one process drops its
   * locks.
   */
  async sql(statement: string): Promise<Record<string, unknown>[]> {
    const client = await openDatabase(resolveSqlite({ path: this.path }), "quick");
    client.exec("PRAGMA busy_timeout = 2000");
    try {
      return client.prepare(statement).all() as Record<string, unknown>[];
    } finally {
      client.close();
    }
  }

  /** Starts a child program from this folder. Its output can be read line by line. */
  child(fixture: string, args: readonly string[], under: readonly string[] = []): Child {
    const child = new Child(new URL(`${fixture}.child.js`, import.meta.url), args, under);
    this.#children.push(child);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) await child.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Whether the system lets us make such a namespace; if not, the test's diagnostic says why. */
export function canRun(t: TestContext, [command, ...args]: readonly string[]): boolean {
  const { status, stderr, error } = spawnSync(command!, [...args, "true"], { encoding: "utf8" });
  if (status === 0) return true;
  t.diagnostic(`not tested here, needs root and namespaces: ${error?.message ?? stderr.trim()}`);
  return false;
}
