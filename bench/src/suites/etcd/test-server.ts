import { startEtcd } from "@holdfast/servers";
import type { BenchServer, Traces } from "../../measuring/suite.js";
import { base64, Gateway } from "./gateway.js";

const AT_ONCE = 100;

/** Starts an etcd, with a connection that reads and, to measure a round trip, writes. */
export async function startTestServer(): Promise<BenchServer> {
  const server = await startEtcd();
  const url = `127.0.0.1:${server.port}`;
  const gateway = new Gateway(url);
  const sum = async (wanted: RegExp) => {
    const lines = (await gateway.page("/metrics")).matchAll(wanted);
    return [...lines].reduce((total, [, value]) => total + Number(value), 0);
  };
  const below = async (start: string, end: string) => {
    const order = { key: base64(start), range_end: base64(end), count_only: true };
    const { count = "0" } = await gateway.call<{ count?: string }>("/v3/kv/range", order);
    return Number(count);
  };
  // What follows "/" in ASCII ends the range of everything that begins with it.
  const inQueue = ({ key }: Traces, resource: string) =>
    below(`${key(resource)}/`, `${key(resource)}0`);
  return {
    url,
    roundTrip: () => gateway.call("/v3/kv/put", { key: base64("probe"), value: base64("x") }),
    calls: (methods) => {
      const any = methods.join("|");
      return sum(
        new RegExp(`^grpc_server_started_total.*grpc_method="(?:${any})".* (\\S+)$`, "gm"),
      );
    },
    content: {
      async held(traces: Traces, resources: readonly string[]) {
        let held = 0;
        for (let from = 0; from < resources.length; from += AT_ONCE) {
          const some = resources.slice(from, from + AT_ONCE);
          const queues = await Promise.all(some.map((resource) => inQueue(traces, resource)));
          held += queues.filter((length) => length > 0).length;
        }
        return held;
      },
      inQueue,
      keys: () => below("\0", "\0"),
      bytes: () => sum(/^etcd_mvcc_db_total_size_in_use_in_bytes (\S+)$/gm),
    },
    async [Symbol.asyncDispose]() {
      gateway.close();
      await server.stop();
    },
  };
}
