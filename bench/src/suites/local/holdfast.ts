import { type AcquireOptions, connect, type Engine } from "holdfast";
import { memoryEngine } from "holdfast/memory";
import { sqliteEngine } from "holdfast/sqlite";
import type { Contender, OpenContext, Reach, Subject } from "../../measuring/suite.js";
import { RESOURCE, WAIT_MS } from "../terms.js";

export const memory = holdfast("memory", "holdfast memory", "process", () => memoryEngine());
export const sqlite = holdfast("sqlite", "holdfast sqlite", "host", sqliteIn);
const ALONE = "one waiter a process has nobody to pass a lease to, so strict makes no difference";

/** Without the cohort: every acquire and every release is a transaction. */
export const sqliteStrict: Contender = {
  ...holdfast("sqlite-strict", "holdfast sqlite, strict", "host", sqliteIn, { fair: "strict" }),
  sitsOut: { sequential: ALONE, "hand-over": ALONE },
};

function sqliteIn({ folder }: OpenContext): Engine {
  return sqliteEngine({ path: `${folder}/locks.db` });
}

function holdfast(
  id: string,
  name: string,
  reach: Reach,
  engineIn: (context: OpenContext) => Engine,
  options: AcquireOptions = {},
): Contender {
  return {
    id,
    name,
    ours: true,
    reach,
    async open(context): Promise<Subject> {
      const engine = engineIn(context);
      const counted = context.counting ? counting(engine) : null;
      const locks = await connect(counted?.engine ?? engine, {
        defaults: { waitMs: WAIT_MS, ...options },
      });
      return {
        acquire: async (resource = RESOURCE) => {
          const lease = await locks.acquire(resource);
          return () => lease.release();
        },
        ...(counted === null ? {} : { calls: counted.calls }),
      };
    },
  };
}

/** The same engine, with its calls counted. On SQLite each call is one transaction. */
function counting(engine: Engine): { engine: Engine; calls: () => number } {
  let calls = 0;
  const count =
    <A extends unknown[], R>(ask: (...args: A) => R) =>
    (...args: A): R => {
      calls++;
      return ask(...args);
    };
  const { name, traits, queue, watch } = engine;
  const counted: Engine = {
    name,
    traits,
    tryAcquire: count((claim, call) => engine.tryAcquire(claim, call)),
    renew: count((grants, call) => engine.renew(grants, call)),
    release: count((grants, call) => engine.release(grants, call)),
    check: count((sequence, call) => engine.check(sequence, call)),
    revoke: count((ref, call) => engine.revoke(ref, call)),
    inspect: count((resource, call) => engine.inspect(resource, call)),
    list: count((filter, call) => engine.list(filter, call)),
    close: () => engine.close(),
    ...(queue && {
      queue: {
        enqueue: count((claim, call) => queue.enqueue(claim, call)),
        heartbeat: count((waiters, call) => queue.heartbeat(waiters, call)),
        withdraw: count((waiter, call) => queue.withdraw(waiter, call)),
        onGrant: (listener) => queue.onGrant(listener),
      },
    }),
    ...(watch && { watch }),
  };
  return { engine: counted, calls: () => calls };
}
