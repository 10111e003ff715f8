import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { ZookeeperEngine } from "./engine.js";
import { optionsFromUrl, resolveZookeeper, type ZookeeperEngineOptions } from "./options.js";
import { ZookeeperTtlEngine } from "./ttl/engine.js";

export type { LayoutName } from "./layout.js";
export { type HoldName, ZOOKEEPER_DEFAULTS, type ZookeeperEngineOptions } from "./options.js";

const CONNECT_TIMEOUT_MS = 5_000;

/** Locks on a ZooKeeper ensemble. Connects at its first call. */
export function zookeeperEngine(options: ZookeeperEngineOptions): Engine {
  return engineOf(options);
}

export async function zookeeperFromUrl(url: EngineUrl): Promise<Engine> {
  const engine = engineOf(optionsFromUrl(url));
  try {
    await engine.open(CONNECT_TIMEOUT_MS);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function engineOf(options: ZookeeperEngineOptions): ZookeeperEngine | ZookeeperTtlEngine {
  const terms = resolveZookeeper(options);
  return terms.hold === "ttl" ? new ZookeeperTtlEngine(terms) : new ZookeeperEngine(terms);
}
