import { startZooKeeperEnsemble } from "@holdfast/servers";
import {
  cutOffFault,
  hangFault,
  relayFaults,
  relaysTo,
  restartFault,
} from "../../../../test-support/torture/faults.fixture.js";
import {
  type BackendFault,
  disposeAll,
  type Place,
} from "../../../../test-support/torture/place.fixture.js";
import { resolveZookeeper } from "../../options.js";
import { pathOf } from "../../paths.js";
import { Session } from "../../wire/session.js";
import { trueRecord, trueSessions } from "./truth.fixture.js";

const TTL_MS = 2_000;
const READER_MS = 40_000;

/** Three servers, and for each process a relay to each of them. */
export async function zookeeperPlace(hold: "session" | "ttl"): Promise<Place> {
  const servers = await startZooKeeperEnsemble();
  const relays = await relaysTo(servers.members.map(({ port }) => port));
  const urlOf = (ports: readonly number[]) =>
    `zookeeper://${ports.map((port) => `127.0.0.1:${port}`).join(",")}?hold=${hold}`;
  const directUrl = urlOf(servers.members.map(({ port }) => port));
  const { location } = resolveZookeeper({ hosts: "h", hold });
  const hosts = servers.members.map(({ port }) => ({ host: "127.0.0.1", port }));
  const reader = new Session({ hosts, timeoutMs: READER_MS, tls: null, digest: null }, () => {});
  // A member that is still joining does not serve. With another fault two would be out at once.
  const whenWhole = (fault: BackendFault): BackendFault => ({
    ...fault,
    inflict: async (random) => {
      await servers.whole();
      await fault.inflict(random);
    },
  });
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: (index) => urlOf(relays[index]!.map(({ port }) => port)),
    directUrl,
    faults: [
      ...relayFaults(relays.flat(), TTL_MS),
      cutOffFault(relays, TTL_MS),
      whenWhole(hangFault(() => servers.leader(), TTL_MS)),
      whenWhole(hangFault((random) => servers.members[random(3)]!, TTL_MS)),
      whenWhole(restartFault(() => servers.leader())),
      whenWhole(restartFault((random) => servers.members[random(3)]!)),
    ],
    truth: (resource) => {
      const path = pathOf(location, resource);
      if (hold === "ttl") return trueRecord(reader, path);
      return trueSessions(reader, servers.members, path);
    },
    async [Symbol.asyncDispose]() {
      await reader.close();
      await disposeAll([servers, ...relays.flat()]);
    },
  };
}
