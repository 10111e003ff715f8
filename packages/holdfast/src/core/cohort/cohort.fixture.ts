import type { Locks } from "../../locks.js";
import type { AcquireOptions, CohortBudget } from "../../options.js";
import type { ManualClock } from "../../testing/index.js";
import { setUp as plainSetUp } from "../test/set-up.fixture.js";

const AMPLE: CohortBudget = { handOvers: 1_024, ms: Infinity };

/** Two connections without a limit on hand-overs, unless a test sets one. */
export function setUp(cohort: CohortBudget = AMPLE) {
  return plainSetUp({ cohort });
}

/** Fails, instead of hanging, if a promise has not settled by now. */
export async function now<T>(work: Promise<T> | undefined): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const pending = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("still pending")), 300);
  });
  try {
    return await Promise.race([work!, pending]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The first of these leases holds a range of tokens, and the others wait for it locally. A claim
 * reserves a range only if others of the process hold or wait when it is made, so an extra lease
 * comes first.
 */
export async function crowd(locks: Locks, clock: ManualClock, options: readonly AcquireOptions[]) {
  const opener = await now(locks.acquire("a", options[0]));
  const asked = options.map((each) => locks.acquire("a", each));
  await clock.advance(0);
  await now(opener.release());
  const first = await now(asked[0]);
  return { first, rest: asked.slice(1) };
}

export async function three(locks: Locks, clock: ManualClock) {
  const labels = ["first", "second", "third"];
  const options = labels.map((label) => ({ label }));
  const { first, rest } = await crowd(locks, clock, options);
  return { first, second: rest[0]!, third: rest[1]! };
}
