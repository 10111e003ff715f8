import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { SqliteEngine } from "./engine.js";
import { optionsFromUrl, resolveSqlite, type SqliteEngineOptions } from "./options.js";

export type { Binding } from "./file/client.js";
export type { SqliteEngineOptions } from "./options.js";

/** Locks for all processes of one host, in one file. The first call opens the file. */
export function sqliteEngine(options: SqliteEngineOptions = {}): Engine {
  return new SqliteEngine(resolveSqlite(options));
}

export async function sqliteFromUrl(url: EngineUrl): Promise<Engine> {
  const engine = new SqliteEngine(resolveSqlite(optionsFromUrl(url)));
  await engine.open();
  return engine;
}
