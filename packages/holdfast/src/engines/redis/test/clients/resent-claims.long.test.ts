// A claim that is run, whose answer is lost, and whose repeat is refused; with Sentinels and on a
// Cluster. Their clients may repeat it by themselves, and then a refusal says nothing about the
// first copy.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Relay } from "@holdfast/servers";
import { Redis } from "ioredis";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { TestCluster } from "../support/test-cluster.fixture.js";
import { CLIENT_NAMES } from "../support/test-server.fixture.js";

const CLUSTERS = { sentinel: () => TestCluster.sentinel(), cluster: () => TestCluster.cluster() };

for (const [kind, start] of Object.entries(CLUSTERS)) {
  describe(`a claim whose repeat is refused, ${kind}`, () => {
    for (const client of CLIENT_NAMES) {
      for (const replicas of [null, { replicas: 1, timeoutMs: 2_000 }]) {
        const how = replicas === null ? client : `${client}, with replicas`;
        it(`is a failure of unknown effect (${how})`, async () => {
          await using cluster = await start();
          const { admin, ports } = cluster.topology;
          const servers = ports.map((port) => new Redis({ port }));
          const relays = new Map<number, Relay>();
          for (const port of ports) relays.set(port, await Relay.start(port));
          const each = (tell: (relay: Relay) => void) => {
            for (const relay of relays.values()) tell(relay);
          };
          const limit = (memory: string) =>
            Promise.all(servers.map((server) => server.config("SET", "maxmemory", memory)));
          try {
            const ways = (port: number) => relays.get(port)!.port;
            const engine = await cluster.engine({ client, ways, replicas });
            await until(
              "it is confirmed",
              () => engine.tryAcquire(claim("warm up"), now()).catch(() => null),
              20_000,
            );
            const warm = claim("a");
            await engine.tryAcquire(warm, now());
            await engine.release([{ ...warm, tombstoneMs: 0 }], now());
            each((relay) => relay.mute());
            const asked = engine.tryAcquire(claim("a"), now()).then(
              () => assert.fail("it was not refused"),
              (error: { effect?: string; message: string }) => error,
            );
            await until("the claim is run", () => admin.exists("holdfast:a"), 20_000);
            await limit("1");
            each((relay) => relay.cut());
            each((relay) => relay.mend());
            const error = await asked;
            assert.equal(error.effect, "unknown", error.message);
          } finally {
            await limit("0");
            for (const server of servers) server.disconnect();
            await Promise.all([...relays.values()].map((relay) => relay.close()));
          }
        });
      }
    }
  });
}
