import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { base64, Gateway } from "./gateway.js";
import { METHODS } from "./methods.js";

/** A transaction and a delete a cycle, and no more: what the gateway allows. */
export const raw: Contender = {
  id: "raw-client",
  name: "raw transaction and delete",
  ours: false,
  reach: "host",
  traces: { ...METHODS, key: (resource) => resource },
  sitsOut: {
    ...sitOut(["process-waiters", "hand-over", "long-holds"], "two requests that do not wait"),
    renewal: "two requests that do not renew",
  },
  async open({ url }): Promise<Subject> {
    const gateway = new Gateway(url);
    return {
      async acquire(resource = RESOURCE) {
        const key = base64(`${resource}/raw`);
        const { succeeded } = await gateway.call<{ succeeded?: boolean }>("/v3/kv/txn", {
          compare: [{ key, target: "CREATE", result: "EQUAL", create_revision: "0" }],
          success: [{ request_put: { key, value: base64("raw") } }],
        });
        if (!succeeded) throw new Error(`${resource} is held, where nobody should wait`);
        return () => gateway.call("/v3/kv/deleterange", { key });
      },
    };
  },
};
