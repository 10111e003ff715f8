import { startZooKeeper } from "@holdfast/servers";
import type { BenchServer, Traces } from "../../measuring/suite.js";
import { BareClient } from "./bare-client.js";

const PROBE = "/probe";
const AT_ONCE = 500;
/** ZooKeeper's default. The tests use a shorter tick, for sessions that end soon. */
const TICK_MS = 2_000;

/** Starts a ZooKeeper, with a session that reads and, to measure a round trip, writes. */
export async function startTestServer(): Promise<BenchServer> {
  const server = await startZooKeeper({ tickMs: TICK_MS });
  const client = await BareClient.open(server.hosts);
  await client.create(PROBE);
  const inQueue = ({ key }: Traces, resource: string) => client.children(key(resource));
  return {
    url: server.hosts,
    roundTrip: () => client.setData(PROBE, "x"),
    // ZooKeeper counts packets of all clients and of all kinds.
    calls: () => server.metric("zk_packets_received"),
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
      keys: () => server.metric("zk_znode_count"),
      bytes: () => server.metric("zk_approximate_data_size"),
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await server.stop();
    },
  };
}
