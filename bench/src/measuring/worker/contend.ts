import { acquireRepeatedly } from "../../suites/gave-up.js";
import { cpuMs, instant, pause } from "../instant.js";
import { SectionLog } from "../section-log.js";
import type { Subject } from "../suite.js";

export interface ContendOrder {
  readonly waiters: number;
  /** Whether each waiter wants its own resource; otherwise all want the same. */
  readonly apart: boolean;
  /** When all loops of all processes start, and after when none starts another section. */
  readonly from: number;
  readonly until: number;
}

export interface ContendReport {
  readonly sections: Float64Array;
  /**
   * The waiters that were still waiting at the end, with the instant at which each began to wait.
   */
  readonly pending: ReadonlyMap<number, number>;
  readonly gaveUp: number;
  /** When measuring ended: the order's end, or earlier if the log was full. */
  readonly endedAt: number;
  /** The CPU time that this process used meanwhile, on all cores. */
  readonly cpuMs: number;
}

// Most sections are empty, because the bench measures the lock and not the work. Some last a turn
// of the event loop, so that a second holder would be seen inside.
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
      // Counted here and not by the log: sections are logged at their end, so all that enter during
      // a long one would see the same log and be long too.
      if (entered++ % LONG_SECTION_EVERY === 0) await new Promise(setImmediate);
      log.add(waiter, askedAt, enteredAt, instant());
      await release();
    }
  };
  await pause(order.from - instant());
  const cpuBefore = cpuMs();
  const loops = Promise.all(Array.from({ length: order.waiters }, (_, waiter) => loop(waiter)));
  // The next contender starts when this one is quiet. We do not wait for a contender that polls
  // with pauses of many seconds.
  const leftMs = order.until + FAREWELL_MS - instant();
  await Promise.race([loops, pause(leftMs)]);
  const pending = new Map([...waitingSince.entries()].filter(([, since]) => since < order.until));
  return { sections: log.pack(), pending, gaveUp, endedAt, cpuMs: cpuMs() - cpuBefore };
}
