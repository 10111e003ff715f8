import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { Child } from "../../../../test-support/child.fixture.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";

/** A folder of its own for each test, gone with everything in it afterwards. */
export class TestServer implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-sqlite-"));
  readonly path = join(this.folder, "locks.db");
  readonly url = `sqlite:${this.path}`;
  readonly #children: Child[] = [];

  /** Runs one statement beside the engine, through the same SQLite: a second one would drop its locks. */
  async sql(statement: string): Promise<Record<string, unknown>[]> {
    const client = await openDatabase(resolveSqlite({ path: this.path }), "quick");
    client.exec("PRAGMA busy_timeout = 2000");
    try {
      return client.prepare(statement).all() as Record<string, unknown>[];
    } finally {
      client.close();
    }
  }

  /** Starts a fixture beside this file; its lines of output arrive one by one. */
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

/** Says why not, where the system does not let us make such a namespace. */
export function canRun(t: TestContext, [command, ...args]: readonly string[]): boolean {
  const { status, stderr, error } = spawnSync(command!, [...args, "true"], { encoding: "utf8" });
  if (status === 0) return true;
  t.diagnostic(`not tested here, needs root and namespaces: ${error?.message ?? stderr.trim()}`);
  return false;
}
