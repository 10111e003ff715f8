import type { Call, Failed, Gone, Renewed, RenewRef } from "../../../engine.js";
import { type EngineError, HoldfastError } from "../../../errors.js";
import { inBatches } from "../sending/batches.js";
import type { ScriptBatcher } from "../sending/script-batcher.js";
import { exceptions, renewed } from "./decode.js";
import { renewManyWords, renewWords } from "./encode.js";
import { failed, isForbidden, outcomeOf } from "./failure.js";
import { keyOf } from "./keys.js";

type Answer = Renewed | Gone | Failed;

// Of each grant id, which the script cuts them by.
const ID_LENGTH = 32;

/** One of many renewals, by its place among them. */
interface Kept {
  readonly place: number;
  readonly key: string;
  readonly id: string;
}

/** Renewals of one ttl and index, which travel as one operation. */
interface Keep {
  readonly ttlMs: number;
  readonly index: number;
  readonly kept: readonly Kept[];
}

/**
 * Renews many: a client spends most of what a renewal costs on its arguments and its answer, so those
 * of one ttl and index share all but the key and the id. An answer for each, in order.
 */
export async function renewTogether(
  batcher: ScriptBatcher,
  prefix: string,
  grants: readonly RenewRef[],
  { startedAt: since, order }: Call,
): Promise<Answer[]> {
  const answers = new Array<Answer>(grants.length);
  const alone = async (place: number) => {
    const ref = grants[place]!;
    const read = (answer: unknown) => renewal(answer, since, ref.ttlMs);
    const key = keyOf(prefix, ref.resource);
    answers[place] = await batcher.run<Answer>(key, renewWords(ref, order), {
      read,
      fail: failed,
    });
  };
  const together = async ({ ttlMs, index, kept }: Keep) => {
    try {
      const keys = kept.map(({ key }) => key);
      const ids = kept.map(({ id }) => id);
      const answer = await batcher.runAtOnce(keys, renewManyWords(ttlMs, index, order, ids));
      const others = exceptions(answer, kept.length);
      const plain: Renewed = { kind: "renewed", since, ttlMs };
      for (const { place } of kept) answers[place] = plain;
      for (const [i, other] of others) answers[kept[i]!.place] = renewal(other, since, ttlMs);
    } catch (error) {
      // One key that this user may not touch refuses them all.
      if (isForbidden((error as EngineError).cause)) {
        await Promise.all(kept.map(({ place }) => alone(place)));
      } else for (const { place } of kept) answers[place] = failed(error);
    }
  };
  const { keeps, others } = sorted(prefix, grants);
  await Promise.all([...keeps.map(together), ...others.map(alone)]);
  return answers;
}

/** Ids of another length are renewed one by one, and so are those that leave. */
function sorted(prefix: string, grants: readonly RenewRef[]): { keeps: Keep[]; others: number[] } {
  const alike = new Map<string, { ttlMs: number; index: number; kept: Kept[] }>();
  const others: number[] = [];
  for (let place = 0; place < grants.length; place++) {
    const { resource, grantId, ttlMs, index = 0, leave = false } = grants[place]!;
    if (grantId.length !== ID_LENGTH || leave) {
      others.push(place);
      continue;
    }
    const kind = `${ttlMs}:${index}`;
    let group = alike.get(kind);
    if (group === undefined) {
      group = { ttlMs, index, kept: [] };
      alike.set(kind, group);
    }
    group.kept.push({ place, key: keyOf(prefix, resource), id: grantId });
  }
  const keeps = [...alike.values()].flatMap(({ ttlMs, index, kept }) =>
    inBatches(
      kept,
      ({ key }) => key,
      () => "=",
    ).map((some) => ({ ttlMs, index, kept: some })),
  );
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
