import { UsageMistake } from "./measuring/run-suite.js";
import type { Suite } from "./measuring/suite.js";

/** Loaded on demand, so that the packages of one suite never slow down or break another. */
const SUITES: Record<string, () => Promise<Suite>> = {
  local: async () => (await import("./suites/local/index.js")).suite,
  mysql: async () => (await import("./suites/mysql/index.js")).suite,
  postgres: async () => (await import("./suites/postgres/index.js")).suite,
  quorum: async () => (await import("./suites/quorum/index.js")).suite,
  redis: async () => (await import("./suites/redis/index.js")).suite,
  zookeeper: async () => (await import("./suites/zookeeper/index.js")).suite,
  etcd: async () => (await import("./suites/etcd/index.js")).suite,
};

export const suiteNames: readonly string[] = Object.keys(SUITES);

export async function loadSuite(name: string): Promise<Suite> {
  const load = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
  if (load === undefined) {
    throw new UsageMistake(`no suite "${name}"; there are ${suiteNames.join(", ")}`);
  }
  return load();
}
