import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { ZookeeperEngine } from "./engine.js";
import { optionsFromUrl, resolveZookeeper, type ZookeeperEngineOptions } from "./options.js";

export type { LayoutName } from "./layout.js";
export { ZOOKEEPER_DEFAULTS, type ZookeeperEngineOptions } from "./options.js";

const CONNECT_TIMEOUT_MS = 5_000;

/** Locks on a ZooKeeper ensemble. Connects when it is first asked something. */
export function zookeeperEngine(options: ZookeeperEngineOptions): Engine {
  return new ZookeeperEngine(resolveZookeeper(options));
}

export async function zookeeperFromUrl(url: EngineUrl): Promise<Engine> {
  const engine = new ZookeeperEngine(resolveZookeeper(optionsFromUrl(url)));
  try {
    await engine.open(CONNECT_TIMEOUT_MS);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
