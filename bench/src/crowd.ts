import { instant, pause } from "./instant.js";
import { SectionLog } from "./section-log.js";
import type { Subject } from "./suite.js";

/** Waiters that stand behind one holder, each of which wants one section. */
export interface Crowd {
  readonly log: SectionLog;
  readonly served: Promise<unknown>;
}

export interface CrowdReport {
  readonly sections: Float64Array;
}

export function gather(subject: Subject, waiters: number): Crowd {
  const log = new SectionLog();
  const one = async (waiter: number): Promise<void> => {
    const askedAt = instant();
    const release = await subject.acquire();
    const enteredAt = instant();
    await new Promise(setImmediate);
    log.add(waiter, askedAt, enteredAt, instant());
    await release();
  };
  const served = Promise.all(Array.from({ length: waiters }, (_, waiter) => one(waiter)));
  // Failures are told by drain; until then nobody listens.
  served.catch(() => {});
  return { log, served };
}

export async function drain({ log, served }: Crowd, forMs: number): Promise<CrowdReport> {
  await Promise.race([served, pause(forMs)]);
  return { sections: log.pack() };
}
