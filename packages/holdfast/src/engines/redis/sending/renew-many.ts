import type { Call, Failed, Gone, Renewed, RenewRef } from "../../../engine.js";
import { type EngineError, HoldfastError } from "../../../errors.js";
import { decodeRenewal, decodeRenewMany } from "../protocol/decode.js";
import { encodeRenewal, encodeRenewMany } from "../protocol/encode.js";
import { failed, isForbidden, outcomeOf } from "../protocol/failure.js";
import { keyOf } from "../protocol/keys.js";
import { inBatches } from "./batches.js";
import type { ScriptBatcher } from "./script-batcher.js";

type Answer = Renewed | Gone | Failed;

// The script cuts the joined grant ids by this length.
const ID_LENGTH = 32;

/** One renewal; place is its index among all that the caller asked for. */
interface Renewal {
  readonly place: number;
  readonly key: string;
  readonly id: string;
}

/** Renewals with the same ttl and index, which travel as one operation. */
interface RenewalGroup {
  readonly ttlMs: number;
  readonly index: number;
  readonly renewals: readonly Renewal[];
}

/**
 * Renews many grants, and gives an answer for each, in order. Most of a renewal's cost is the
 * client's work on its arguments and answer, so renewals with the same ttl and index share all but
 * the key and the id.
 */
export async function renewMany(
  batcher: ScriptBatcher,
  prefix: string,
  grants: readonly RenewRef[],
  { startedAt: since, order }: Call,
): Promise<Answer[]> {
  const answers = new Array<Answer>(grants.length);
  const renewAlone = async (place: number) => {
    const ref = grants[place]!;
    const read = (answer: unknown) => decodeOneRenewal(answer, since, ref.ttlMs);
    const key = keyOf(prefix, ref.resource);
    answers[place] = await batcher.run<Answer>(key, encodeRenewal(ref, order), {
      read,
      fail: failed,
    });
  };
  const renewGroup = async ({ ttlMs, index, renewals }: RenewalGroup) => {
    try {
      const keys = renewals.map(({ key }) => key);
      const ids = renewals.map(({ id }) => id);
      const answer = await batcher.runAtOnce(keys, encodeRenewMany(ttlMs, index, order, ids));
      const others = decodeRenewMany(answer, renewals.length);
      const plain: Renewed = { kind: "renewed", since, ttlMs };
      for (const { place } of renewals) answers[place] = plain;
      for (const [i, other] of others)
        answers[renewals[i]!.place] = decodeOneRenewal(other, since, ttlMs);
    } catch (error) {
      // One key that this user may not access makes the server refuse the whole call.
      if (isForbidden((error as EngineError).cause)) {
        await Promise.all(renewals.map(({ place }) => renewAlone(place)));
      } else for (const { place } of renewals) answers[place] = failed(error);
    }
  };
  const { groups, others } = groupAlike(prefix, grants);
  await Promise.all([...groups.map(renewGroup), ...others.map(renewAlone)]);
  return answers;
}

/** Grants with ids of another length, and those that are left behind, are renewed one by one. */
function groupAlike(
  prefix: string,
  grants: readonly RenewRef[],
): { groups: RenewalGroup[]; others: number[] } {
  const alike = new Map<string, { ttlMs: number; index: number; renewals: Renewal[] }>();
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
      group = { ttlMs, index, renewals: [] };
      alike.set(kind, group);
    }
    group.renewals.push({ place, key: keyOf(prefix, resource), id: grantId });
  }
  const groups = [...alike.values()].flatMap(({ ttlMs, index, renewals }) =>
    inBatches(
      renewals,
      ({ key }) => key,
      () => "=",
    ).map((some) => ({ ttlMs, index, renewals: some })),
  );
  return { groups, others };
}

export function decodeOneRenewal(answer: unknown, since: number, ttlMs: number): Answer {
  const outcome = outcomeOf(answer);
  try {
    return outcome instanceof HoldfastError
      ? failed(outcome)
      : decodeRenewal(outcome, since, ttlMs);
  } catch (error) {
    return failed(error);
  }
}
