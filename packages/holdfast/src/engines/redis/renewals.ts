import type { Call, Failed, Gone, Renewed, RenewRef } from "../../engine.js";
import { type EngineError, HoldfastError } from "../../errors.js";
import { exceptions, renewed } from "./answers.js";
import type { Commander } from "./commander.js";
import { failed, isForbidden, outcomeOf } from "./failure.js";
import { keyOf } from "./keys.js";
import { keepWords, renewWords } from "./words.js";

type Answer = Renewed | Gone | Failed;

// Of each grant id, which the script cuts them by.
const ID_LENGTH = 32;
// For so many a server keeps everybody else waiting, which takes it less than a millisecond.
const MOST_AT_ONCE = 512;

/** Renewals of one ttl and index, which travel as one operation. */
interface Keep {
  readonly ttlMs: number;
  readonly index: number;
  /** Which of all renewals these are, and the key of each. */
  readonly places: number[];
  readonly keys: string[];
  readonly ids: string[];
}

/**
 * Renews many: a client spends most of what a renewal costs on its arguments and its answer, so those
 * of one ttl and index share all but the key and the id. An answer for each, in order.
 */
export async function renewTogether(
  commander: Commander,
  prefix: string,
  grants: readonly RenewRef[],
  { startedAt: since, order }: Call,
): Promise<Answer[]> {
  const answers = new Array<Answer>(grants.length);
  const alone = async (place: number) => {
    const ref = grants[place]!;
    const read = (answer: unknown) => renewal(answer, since, ref.ttlMs);
    const key = keyOf(prefix, ref.resource);
    answers[place] = await commander.run<Answer>(key, renewWords(ref, order), {
      read,
      fail: failed,
    });
  };
  const together = async ({ ttlMs, index, places, keys, ids }: Keep) => {
    try {
      const answer = await commander.runAtOnce(keys, keepWords(ttlMs, index, order, ids));
      const others = exceptions(answer, places.length);
      const plain: Renewed = { kind: "renewed", since, ttlMs };
      for (const place of places) answers[place] = plain;
      for (const [i, other] of others) answers[places[i]!] = renewal(other, since, ttlMs);
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

/** Ids of another length are renewed one by one, and so are those that leave. */
function sorted(prefix: string, grants: readonly RenewRef[]): { keeps: Keep[]; others: number[] } {
  const keeps: Keep[] = [];
  const open = new Map<string, Keep>();
  const others: number[] = [];
  for (let place = 0; place < grants.length; place++) {
    const { resource, grantId, ttlMs, index = 0, leave = false } = grants[place]!;
    if (grantId.length !== ID_LENGTH || leave) {
      others.push(place);
      continue;
    }
    const kind = `${ttlMs}:${index}`;
    let keep = open.get(kind);
    if (keep === undefined || keep.places.length === MOST_AT_ONCE) {
      keep = { ttlMs, index, places: [], keys: [], ids: [] };
      keeps.push(keep);
      open.set(kind, keep);
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
  try {
    return outcome instanceof HoldfastError ? failed(outcome) : renewed(outcome, since, ttlMs);
  } catch (error) {
    return failed(error);
  }
}
