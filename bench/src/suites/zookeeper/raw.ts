import type { Contender, Subject } from "../../measuring/suite.js";
import { RESOURCE, sitOut } from "../terms.js";
import { BareClient } from "./bare-client.js";

/** Two writes a cycle, and no more: what the server allows. */
export const raw: Contender = {
  id: "raw-client",
  name: "raw create and delete",
  ours: false,
  reach: "host",
  traces: { sends: ["packets"], key: (resource) => `/${resource}` },
  sitsOut: {
    ...sitOut(["process-waiters", "hand-over", "long-holds"], "two requests that do not wait"),
    renewal: "two requests that do not renew",
  },
  async open({ url }): Promise<Subject> {
    const client = await BareClient.open(url);
    return {
      async acquire(resource = RESOURCE) {
        const path = `/${resource}`;
        await client.create(path, { ephemeral: true });
        return () => client.remove(path);
      },
    };
  },
};
