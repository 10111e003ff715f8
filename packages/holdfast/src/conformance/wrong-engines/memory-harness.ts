import type { Engine } from "../../engine.js";
import { MEMORY_TRAITS } from "../../engines/memory/engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { type FlakyEngine, flakyEngine } from "../../testing/flaky-engine.js";
import type { Harness } from "../harness.js";
import { findLaw } from "../suite.js";

/** What may be laid over the memory engine: nothing, a narrower view, or a defect. */
export type Overlay = (engine: Engine, store: MemoryStore) => Engine;

/** One store, and clients on it that can be cut off. */
export function memoryHarness(
  overlay: Overlay = (engine) => engine,
  makeStore: () => MemoryStore = () => new MemoryStore(),
): Harness {
  let store = makeStore();
  const wires = new WeakMap<Engine, FlakyEngine>();
  return {
    name: "memory",
    traits: MEMORY_TRAITS,
    open() {
      const wire = flakyEngine(memoryEngine({ store }));
      const engine = overlay(wire, store);
      wires.set(engine, wire);
      return engine;
    },
    reset() {
      store = makeStore();
    },
    age: (resource, ms) => store.age(resource, ms),
    sever: (engine) => wires.get(engine)!.cut("unknown"),
    excuses: ["L4.17", "L4.18"].map((law) => ({
      law,
      why: "all its clients live in one process, and so read one clock",
      witness: (harness) => findLaw(law).run(harness),
    })),
  };
}
