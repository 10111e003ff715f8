import { type LockOptions, lock } from "simple-redis-mutex";
import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE } from "../terms.js";
import { openQuickNodeRedis } from "./clients.js";
import { renewing } from "./renewing.js";
import { PEER_SITS_OUT } from "./terms.js";

/** Waits for ever by itself, by pushes; its polling every 10 s is for holders that died. */
export const simpleMutex: Contender = {
  id: "simple-mutex",
  name: "simple-redis-mutex",
  ours: false,
  reach: "host",
  traces: {
    sends: ["set", "incr", "evalsha"],
    renews: ["get", "pexpire"],
    key: (resource) => `@simple-redis-mutex:lock-${resource}`,
  },
  sitsOut: PEER_SITS_OUT,
  async open({ url, ttlMs }): Promise<Subject> {
    const client = await openQuickNodeRedis(url);
    const options: LockOptions = { timeout: ttlMs };
    return {
      acquire: (resource = RESOURCE) => lock(client as never, resource, options),
      async keep(resource) {
        const release = await lock(client as never, resource, options);
        return renewing(ttlMs, () => release.refreshTimeout(), release);
      },
    };
  },
};
