import { acquireRepeatedly } from "../../suites/gave-up.js";
import { cpuMs, instant, pause } from "../instant.js";
import { SectionLog } from "../section-log.js";
import type { Subject } from "../suite.js";

export interface ContendOrder {
  readonly waiters: number;
  /** Each waiter wants a resource of its own; otherwise all want the same. */
  readonly apart: boolean;
  /** The instant at which all loops of all processes start, and the one after which none begins anew. */
  readonly from: number;
  readonly until: number;
}

export interface ContendReport {
  readonly sections: Float64Array;
  /** The waiters that were not served at the end, and since when each has been waiting. */
  readonly pending: ReadonlyMap<number, number>;
  readonly gaveUp: number;
  /** When measuring ended: the order's end, or earlier if the log was full. */
  readonly endedAt: number;
  /** What this process used from the first to the last, on all cores. */
  readonly cpuMs: number;
}

// Most sections are empty, so that the lock is measured and not the work. Every so often one lasts
// a turn of the event loop: a second holder would be seen inside it.
const LONG_SECTION_EVERY = 16;
const FAREWELL_MS = 2_000;

/** Loops of acquire and release, one per waiter. */
export async function contend(subject: Subject, order: ContendOrder): Promise<ContendReport> {
  const log = new SectionLog();
  const waitingSince = new Array<number>(order.waiters).fill(Number.NaN);
  let endedAt = order.until;
  let gaveUp = 0;
  let entered = 0;
  const countGaveUp = () => {
    gaveUp++;
  };
  const stillWanted = () => instant() < order.until;
  const loop = async (waiter: number): Promise<void> => {
    const ask = order.apart
      ? subject.acquire.bind(subject, `own-${waiter}`)
      : () => subject.acquire();
    for (;;) {
      const askedAt = instant();
      if (askedAt >= order.until) return;
      if (log.full) {
        endedAt = Math.min(endedAt, askedAt);
        return;
      }
      waitingSince[waiter] = askedAt;
      const release = await acquireRepeatedly(ask, countGaveUp, stillWanted);
      if (release === null) return;
      const enteredAt = instant();
      waitingSince[waiter] = Number.NaN;
      // Not by the log: all that are let in before the long one ends would find it as long as it did.
      if (entered++ % LONG_SECTION_EVERY === 0) await new Promise(setImmediate);
      log.add(waiter, askedAt, enteredAt, instant());
      await release();
    }
  };
  await pause(order.from - instant());
  const cpuBefore = cpuMs();
  const loops = Promise.all(Array.from({ length: order.waiters }, (_, waiter) => loop(waiter)));
  // The next contender starts when this one is still. Who polls with pauses of many seconds may come
  // back long after; nobody waits for that.
  const patience = order.until + FAREWELL_MS - instant();
  await Promise.race([loops, pause(patience)]);
  const pending = new Map([...waitingSince.entries()].filter(([, since]) => since < order.until));
  return { sections: log.pack(), pending, gaveUp, endedAt, cpuMs: cpuMs() - cpuBefore };
}
