import { UsageMistake } from "./run-suite.js";
import type { Suite } from "./suite.js";

/** Loaded when asked for, so that one suite's peers never slow down or break another. */
const SUITES: Record<string, () => Promise<Suite>> = {
  local: async () => (await import("./local/index.js")).suite,
  mysql: async () => (await import("./mysql/index.js")).suite,
  postgres: async () => (await import("./postgres/index.js")).suite,
  quorum: async () => (await import("./quorum/index.js")).suite,
  redis: async () => (await import("./redis/index.js")).suite,
  zookeeper: async () => (await import("./zookeeper/index.js")).suite,
  etcd: async () => (await import("./etcd/index.js")).suite,
};

export const suiteNames: readonly string[] = Object.keys(SUITES);

export async function loadSuite(name: string): Promise<Suite> {
  const load = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (load === undefined) {
    throw new UsageMistake(`no suite "${name}"; there are ${suiteNames.join(", ")}`);
  }
  return load();
}
