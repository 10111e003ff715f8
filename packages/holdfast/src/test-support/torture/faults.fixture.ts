import { setTimeout as sleep } from "node:timers/promises";
import { Relay } from "@holdfast/servers";
import type { Random } from "../seeded-random.fixture.js";
import { type BackendFault, PROCESSES } from "./player.fixture.js";

interface Server {
  pause(): void;
  resume(): void;
  restart(): Promise<void>;
}

/** One relay per process to each of these servers. */
export function relaysTo(ports: readonly number[]): Promise<Relay[][]> {
  const ofOne = () => Promise.all(ports.map((port) => Relay.start(port)));
  return Promise.all(Array.from({ length: PROCESSES }, ofOne));
}

/** Faults between one process and its backend. */
export function relayFaults(relays: readonly Relay[], longestMs: number): BackendFault[] {
  const fault = (
    name: string,
    begin: (relay: Relay) => void,
    end: (relay: Relay) => void,
  ): BackendFault => ({
    name,
    inflict: async (random) => {
      const relay = relays[random(relays.length)]!;
      begin(relay);
      await sleep(random(longestMs));
      end(relay);
    },
  });
  const mend = (relay: Relay) => relay.mend();
  return [
    fault("cut", (relay) => relay.cut(), mend),
    fault("hang", (relay) => relay.hang(), mend),
    // A connection that has lost bytes must be closed: otherwise every later answer would be taken
    // for that of an earlier request, which no network does.
    fault(
      "mute",
      (relay) => relay.mute(),
      (relay) => {
        relay.cut();
        relay.mend();
      },
    ),
    // Requests sent during the fault arrive late, some after their sender has given up.
    fault(
      "late",
      (relay) => relay.hold(),
      (relay) => relay.deliver(),
    ),
  ];
}

/** One process cannot reach any server. */
export function cutOffFault(
  relays: readonly (readonly Relay[])[],
  longestMs: number,
): BackendFault {
  return {
    name: "process cut off",
    inflict: async (random) => {
      const own = relays[random(relays.length)]!;
      for (const relay of own) relay.cut();
      await sleep(random(longestMs));
      for (const relay of own) relay.mend();
    },
  };
}

/** A server is killed and started again on its durable data. */
export function restartFault(pick: (random: Random) => Server | Promise<Server>): BackendFault {
  return {
    name: "server killed",
    inflict: async (random) => (await pick(random)).restart(),
  };
}

/** A server is stopped, and continued as if nothing had happened. */
export function hangFault(
  pick: (random: Random) => Server | Promise<Server>,
  longestMs: number,
): BackendFault {
  return {
    name: "server hung",
    inflict: async (random) => {
      const server = await pick(random);
      server.pause();
      await sleep(random(longestMs));
      server.resume();
    },
  };
}
