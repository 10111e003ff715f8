import { acquireRepeatedly } from "../../suites/gave-up.js";
import { instant, pause } from "../instant.js";
import { SectionLog } from "../section-log.js";
import type { Subject } from "../suite.js";
import { resourceName } from "./holdings.js";

/** Waiters behind one holder, or each behind its own holder. Each wants one section. */
export interface Crowd {
  readonly log: SectionLog;
  readonly served: Promise<unknown>;
  gaveUp: number;
}

export interface CrowdReport {
  readonly sections: Float64Array;
  readonly gaveUp: number;
}

export function gather(subject: Subject, waiters: number, apart: boolean): Crowd {
  const log = new SectionLog();
  const countGaveUp = () => {
    crowd.gaveUp++;
  };
  const one = async (waiter: number): Promise<void> => {
    const askedAt = instant();
    const ask = () => (apart ? subject.acquire(resourceName(waiter)) : subject.acquire());
    const release = await acquireRepeatedly(ask, countGaveUp, () => true);
    const enteredAt = instant();
    await new Promise(setImmediate);
    log.add(waiter, askedAt, enteredAt, instant());
    await release!();
  };
  const served = Promise.all(Array.from({ length: waiters }, (_, waiter) => one(waiter)));
  // drain reports failures. Until then nobody handles this rejection.
  served.catch(() => {});
  const crowd: Crowd = { log, served, gaveUp: 0 };
  return crowd;
}

export async function drain(crowd: Crowd, forMs: number): Promise<CrowdReport> {
  await Promise.race([crowd.served, pause(forMs)]);
  return { sections: crowd.log.pack(), gaveUp: crowd.gaveUp };
}
