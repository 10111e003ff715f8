import { startEtcdCluster } from "@holdfast/servers";
import {
  cutOffFault,
  hangFault,
  relayFaults,
  relaysTo,
  restartFault,
} from "../../../../test-support/torture/faults.fixture.js";
import { disposeAll, type Place } from "../../../../test-support/torture/place.fixture.js";
import { Lane } from "./harness.fixture.js";

const TTL_MS = 3_000;

/** Three servers, and for each process a relay to each of them. */
export async function etcdPlace(): Promise<Place> {
  const servers = await startEtcdCluster();
  const relays = await relaysTo(servers.members.map(({ port }) => port));
  const urlOf = (ports: readonly number[]) =>
    `etcd://${ports.map((port) => `127.0.0.1:${port}`).join(",")}`;
  const ports = servers.members.map(({ port }) => port);
  const never = async () => {};
  const records = new Lane(async () => ({ ports, restart: never, stop: never }), {
    direct: true,
  });
  await records.start();
  const { truth } = records.harness();
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: (index) => urlOf(relays[index]!.map(({ port }) => port)),
    directUrl: urlOf(ports),
    faults: [
      ...relayFaults(relays.flat(), TTL_MS),
      cutOffFault(relays, TTL_MS),
      // Shorter than a lease: a leader that hung for longer revokes leases that live
      // (etcd-io/etcd#15247).
      hangFault(() => servers.leader(), TTL_MS / 3),
      hangFault((random) => servers.members[random(3)]!, TTL_MS / 3),
      restartFault(() => servers.leader()),
      restartFault((random) => servers.members[random(3)]!),
    ],
    truth: (resource) => truth!(resource),
    async [Symbol.asyncDispose]() {
      await records.stop();
      await disposeAll([servers, ...relays.flat()]);
    },
  };
}
