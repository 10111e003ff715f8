import type { Call, Engine, RenewRef } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { Locks } from "../../locks.js";
import type { ConnectOptions } from "../../options.js";
import { type FlakyEngine, flakyEngine, ManualClock } from "../../testing/index.js";

/** Two connections to one store. The first one uses an engine that can be made to fail. */
export function setUp(options: Omit<ConnectOptions, "clock"> = {}, clock = new ManualClock()) {
  const store = new MemoryStore();
  const engine = flakyEngine(memoryEngine({ store }));
  const locks = new Locks(engine, { ...options, clock });
  const other = new Locks(memoryEngine({ store }), { clock });
  const held = (name: string) => store.resources.get(name)?.grants.size ?? 0;
  const queued = (name: string) => store.resources.get(name)?.queue.length ?? 0;
  return { clock, store, engine, locks, other, held, queued };
}

/** The same engine, and a record of every batch of renewals that it got. */
export function recordingRenewals(engine: FlakyEngine): {
  readonly noted: Engine;
  readonly batches: (readonly RenewRef[])[];
} {
  const batches: (readonly RenewRef[])[] = [];
  const noted: Engine = Object.assign(Object.create(engine) as Engine, {
    renew: (refs: readonly RenewRef[], call: Call) => {
      batches.push(refs);
      return engine.renew(refs, call);
    },
    close: () => engine.close(),
  });
  return { noted, batches };
}

/** A promise, and the function that resolves it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((go) => {
    open = go;
  });
  return { opened, open };
}

/**
 * Returns the error as a value, so that no rejection is unhandled while the test does other things.
 */
export function outcomeOf<T>(work: Promise<T>): Promise<T | Error> {
  return work.catch((error: Error) => error);
}
