import { systemClock } from "../../core/runtime/clock.js";
import type { Engine } from "../../engine.js";
import { MEMORY_TRAITS } from "../../engines/memory/engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { type FlakyEngine, flakyEngine } from "../../testing/flaky-engine.js";
import type { Harness } from "../harness.js";
import { findLaw } from "../suite.js";
import { garbledAnswers, relayedCalls } from "./garbling.js";

/** What may wrap the memory engine: nothing, a narrower view, or a defect. */
export type Overlay = (engine: Engine, store: MemoryStore, servers: PretendedServers) => Engine;

/** Simulated servers: the memory engine works on whatever happens to them. */
export interface PretendedServers {
  readonly hung: ReadonlySet<number>;
  /** How many restarts there were in total. */
  restarts: number;
}

const SERVERS = 3;
const SURVIVAL_TTL_MS = 3_000;

/** One store, and clients on it that can be cut off. */
export function memoryHarness(
  overlay: Overlay = (engine) => engine,
  makeStore: () => MemoryStore = () => new MemoryStore(),
): Harness {
  let store = makeStore();
  const hung = new Set<number>();
  const servers: PretendedServers = { hung, restarts: 0 };
  const members = Array.from({ length: SERVERS }, (_, i) => ({
    name: `server ${i}`,
    hang: () => void hung.add(i),
    resume: () => void hung.delete(i),
    restart: () => void servers.restarts++,
  }));
  const wires = new WeakMap<Engine, FlakyEngine>();
  return {
    name: "memory",
    traits: MEMORY_TRAITS,
    open() {
      const wire = flakyEngine(memoryEngine({ store }));
      const engine = overlay(wire, store, servers);
      wires.set(engine, wire);
      return engine;
    },
    reset() {
      store = makeStore();
    },
    age: (resource, ms) => store.age(resource, ms),
    ageTombstones: (_resource, ms) => store.ageTombstones(ms),
    sever: (engine) => wires.get(engine)!.cut("unknown"),
    survival: { ttlMs: SURVIVAL_TTL_MS, members },
    serverTimeUs: () => process.cpuUsage().user + process.cpuUsage().system,
    // A waiter in memory lives as long as its process, so silence costs no place.
    silence() {},
    truth(resource) {
      const now = store.instant(systemClock.now());
      const grants = [...(store.resources.get(resource)?.grants.values() ?? [])];
      return grants
        .map(({ token, expiresAt }) => ({ token, remainingMs: expiresAt - now }))
        .filter(({ remainingMs }) => remainingMs > 0);
    },
    relayed: () => relayedCalls(overlay(memoryEngine({ store }), store, servers)),
    misanswered() {
      const { engine, ...wire } = garbledAnswers(memoryEngine({ store }));
      return { engine: overlay(engine, store, servers), ...wire };
    },
    excuses: ["L4.17", "L4.18"].map((law) => ({
      law,
      why: "all its clients live in one process, and so read one clock",
      witness: (harness) => findLaw(law).run(harness),
    })),
  };
}
