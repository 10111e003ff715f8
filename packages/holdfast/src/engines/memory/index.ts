import { type Known, refuseForeign } from "../../core/input/known-options.js";
import type { Engine } from "../../engine.js";
import { kindOf, UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";
import { MemoryEngine } from "./engine.js";
import { MemoryStore } from "./store.js";

export { MemoryStore } from "./store.js";

export interface MemoryEngineOptions {
  /** Engines on the same store contend with each other, as processes on one backend do. */
  readonly store?: MemoryStore;
}

const OPTIONS: Known<MemoryEngineOptions> = { store: true };

/** Locks inside one process, under the same contract as every other engine. */
export function memoryEngine(options: MemoryEngineOptions = {}): Engine {
  const isOne = (given: object) => given instanceof MemoryStore;
  refuseForeign(options, OPTIONS, "memoryEngine", { option: "store", isOne });
  const { store = new MemoryStore() } = options;
  if (!isOne(store)) throw new UsageError(`store must be a MemoryStore, got ${kindOf(store)}`);
  return new MemoryEngine(store);
}

export function memoryFromUrl(url: EngineUrl): Engine {
  refuseUnknownParams(url, []);
  if (url.path === "" && url.hosts.length === 0) return memoryEngine();
  const hosts = url.hosts.length === 0 ? "" : `//${url.hosts.map(({ host }) => host).join(",")}`;
  throw new UsageError(
    `memory: takes nothing after the colon, got ${JSON.stringify(hosts + url.path)}; ` +
      "hand memoryEngine({ store }) to connect to share one store",
  );
}
