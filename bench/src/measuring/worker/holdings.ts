import { instant } from "../instant.js";
import type { ReleaseLock, Subject } from "../suite.js";

// Enough to keep the backend busy, and few enough that no call misses its deadline in our own
// queue.
const AT_ONCE = 256;

export function resourceName(index: number): string {
  return `held-${index}`;
}

/** Many resources that one worker process holds, and keeps renewed where the contender can. */
export class Holdings {
  readonly #subject: Subject;
  readonly #releases: ReleaseLock[] = [];

  constructor(subject: Subject) {
    this.#subject = subject;
  }

  /** Returns how many are held after that. */
  async add(count: number): Promise<number> {
    const from = this.#releases.length;
    const acquired = new Array<ReleaseLock>(count);
    const { keep } = this.#subject;
    await spread(count, async (i) => {
      const name = resourceName(from + i);
      acquired[i] = keep ? await keep.call(this.#subject, name) : await this.#subject.acquire(name);
    });
    for (const release of acquired) this.#releases.push(release);
    return this.#releases.length;
  }

  /** Releases the last ones. Returns the instant before the first release. */
  async release(count: number): Promise<number> {
    const leftAt = instant();
    const going = this.#releases.splice(-count);
    await spread(going.length, (i) => going[i]!());
    return leftAt;
  }
}

async function spread(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const loop = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, count) }, loop));
}
