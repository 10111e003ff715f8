import type { Failed, Gone, Renewed, RenewRef } from "../../engine.js";
import { type EngineError, HoldfastError } from "../../errors.js";
import { gone, isDone } from "./answers.js";
import type { Commander } from "./commander.js";
import { failed, isForbidden, outcomeOf } from "./failure.js";
import { keyOf } from "./keys.js";
import { renewWords } from "./words.js";

type Answer = Renewed | Gone | Failed;

// Of each grant id, which the script cuts them by.
const ID_LENGTH = 32;
// For so many a server keeps everybody else waiting, which takes it less than a millisecond.
const MOST_AT_ONCE = 512;

/** Renewals of one ttl, which travel as one operation. */
interface Keep {
  readonly ttlMs: number;
  /** Which of all renewals these are, and the key of each. */
  readonly places: number[];
  readonly keys: string[];
  readonly ids: string[];
}

/**
 * Renews many: a client spends most of what a renewal costs on its arguments and its answer, so those
 * of one ttl share all but the key and the id. An answer for each, in order.
 */
export async function renewTogether(
  commander: Commander,
  prefix: string,
  grants: readonly RenewRef[],
  since: number,
): Promise<Answer[]> {
  const answers = new Array<Answer>(grants.length);
  const alone = async (place: number) => {
    const ref = grants[place]!;
    const read = (answer: unknown) => renewal(answer, since, ref.ttlMs);
    const key = keyOf(prefix, ref.resource);
    answers[place] = await commander.run<Answer>(key, renewWords(ref), { read, fail: failed });
  };
  const together = async ({ ttlMs, places, keys, ids }: Keep) => {
    try {
      const rest = await commander.runAtOnce(keys, ["keep", String(ttlMs), ids.join("")]);
      const renewed: Renewed = { kind: "renewed", since, ttlMs };
      for (const place of places) answers[place] = renewed;
      if (!Array.isArray(rest)) return;
      // Those that are not plain: which, and its answer.
      for (let i = 0; i < rest.length; i += 2) {
        answers[places[Number(rest[i])]!] = renewal(rest[i + 1], since, ttlMs);
      }
    } catch (error) {
      // One key that this user may not touch refuses them all.
      if (isForbidden((error as EngineError).cause)) await Promise.all(places.map(alone));
      else for (const place of places) answers[place] = failed(error);
    }
  };
  const { keeps, others } = sorted(prefix, grants);
  await Promise.all([...keeps.map(together), ...others.map(alone)]);
  return answers;
}

/** Other engines' ids may have any form; those are renewed one by one. */
function sorted(prefix: string, grants: readonly RenewRef[]): { keeps: Keep[]; others: number[] } {
  const keeps: Keep[] = [];
  const open = new Map<number, Keep>();
  const others: number[] = [];
  for (let place = 0; place < grants.length; place++) {
    const { resource, grantId, ttlMs } = grants[place]!;
    if (grantId.length !== ID_LENGTH) {
      others.push(place);
      continue;
    }
    let keep = open.get(ttlMs);
    if (keep === undefined || keep.places.length === MOST_AT_ONCE) {
      keep = { ttlMs, places: [], keys: [], ids: [] };
      keeps.push(keep);
      open.set(ttlMs, keep);
    }
    keep.places.push(place);
    keep.keys.push(keyOf(prefix, resource));
    keep.ids.push(grantId);
  }
  return { keeps, others };
}

/** The answer to one renewal. */
export function renewal(answer: unknown, since: number, ttlMs: number): Answer {
  const outcome = outcomeOf(answer);
  if (outcome instanceof HoldfastError) return failed(outcome);
  return isDone(outcome) ? { kind: "renewed", since, ttlMs } : gone(outcome);
}
