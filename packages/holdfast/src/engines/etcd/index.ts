import type { Engine } from "../../engine.js";
import type { EngineUrl } from "../../url.js";
import { EtcdEngine } from "./engine.js";
import type { EtcdGuard } from "./holding/guard.js";
import { type EtcdEngineOptions, resolveEtcd, termsFromUrl } from "./options.js";

export type { EtcdGuard } from "./holding/guard.js";
export { ETCD_DEFAULTS, type EtcdEngineOptions, type EtcdTls } from "./options.js";

export interface EtcdLocks extends Engine {
  /** What a transaction of your own must compare to commit only while this lease's grant exists. */
  guard(lease: { readonly resource: string; readonly token: bigint }): EtcdGuard;
}

/** Locks on an etcd server or cluster, through its JSON gateway. Needs no client package. */
export function etcdEngine(options: EtcdEngineOptions): EtcdLocks {
  return new EtcdEngine(resolveEtcd(options));
}

export async function etcdFromUrl(url: EngineUrl): Promise<Engine> {
  const engine = new EtcdEngine(termsFromUrl(url));
  try {
    await engine.open();
  } catch (error) {
    await engine.close();
    throw error;
  }
  return engine;
}
