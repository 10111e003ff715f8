import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { Engine } from "../engine.js";
import { MemoryStore, memoryEngine } from "../engines/memory/index.js";
import { sqliteEngine } from "../engines/sqlite/index.js";

/** Engines that share one backend, for each backend that needs no server. */
export function backends(): readonly { readonly name: string; open(): Engine }[] {
  const store = new MemoryStore();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-recipes-"));
  after(() => rmSync(folder, { recursive: true, force: true }));
  return [
    { name: "memory", open: () => memoryEngine({ store }) },
    { name: "sqlite", open: () => sqliteEngine({ path: join(folder, "locks.db") }) },
  ];
}
