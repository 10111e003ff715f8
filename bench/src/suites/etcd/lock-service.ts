import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE } from "../terms.js";
import { Gateway } from "./gateway.js";
import { METHODS } from "./methods.js";

/**
 * The lock that the server itself offers: Go's concurrency.Mutex, run in the server. Each waiter
 * needs its own lease, which is granted once and used again. Nothing keeps the lease alive.
 */
export const lockService: Contender = {
  id: "lock-service",
  name: "etcd's lock service",
  ours: false,
  reach: "host",
  traces: { ...METHODS, key: (resource) => resource },
  sitsOut: { renewal: "leaves leases to its user" },
  async open({ url, ttlMs }): Promise<Subject> {
    const gateway = new Gateway(url);
    const free: string[] = [];
    const grant = async () => {
      const order = { TTL: String(Math.ceil(ttlMs / 1e3)) };
      return (await gateway.call<{ ID: string }>("/v3/lease/grant", order)).ID;
    };
    return {
      async acquire(resource = RESOURCE) {
        const lease = free.pop() ?? (await grant());
        const name = Buffer.from(resource).toString("base64");
        const { key } = await gateway.call<{ key: string }>("/v3/lock/lock", { name, lease });
        return async () => {
          await gateway.call("/v3/lock/unlock", { key });
          free.push(lease);
        };
      },
    };
  },
};
