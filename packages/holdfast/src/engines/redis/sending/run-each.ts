import type { Failed, GrantRef } from "../../../engine.js";
import { HoldfastError } from "../../../errors.js";
import { failed } from "../protocol/failure.js";
import { keyOf } from "../protocol/keys.js";
import type { ScriptBatcher } from "./script-batcher.js";

/**
 * Runs an operation for each ref and gives an answer for each. A failure is an answer for its ref
 * alone.
 */
export function runEach<R extends GrantRef, A>(
  batcher: ScriptBatcher,
  prefix: string,
  refs: readonly R[],
  timeoutMs: number,
  wordsOf: (ref: R) => string[],
  read: (answer: unknown, ref: R) => A,
): Promise<readonly (A | Failed)[]> {
  if (refs.length === 1) {
    const only = refs[0]!;
    const reader = {
      read: (answer: unknown): (A | Failed)[] => [read(answer, only)],
      fail: (error: unknown): (A | Failed)[] => [failed(error)],
    };
    return batcher.run(keyOf(prefix, only.resource), wordsOf(only), reader, timeoutMs);
  }
  const ask = (ref: R) => ({ key: keyOf(prefix, ref.resource), words: wordsOf(ref) });
  return batcher
    .runAll(refs, ask, timeoutMs)
    .then((answers) => answers.map((answer, i) => readOne(answer, refs[i]!, read)));
}

function readOne<R, A>(answer: unknown, ref: R, read: (answer: unknown, ref: R) => A): A | Failed {
  try {
    return answer instanceof HoldfastError ? failed(answer) : read(answer, ref);
  } catch (error) {
    return failed(error);
  }
}
