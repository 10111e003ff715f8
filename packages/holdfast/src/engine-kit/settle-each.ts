import type { Failed } from "../engine.js";
import { EngineError } from "../errors.js";

/** An answer for each; one that fails is an answer too, and does not decide for the others. */
export function settleEach<R, A>(
  refs: readonly R[],
  ask: (ref: R) => Promise<A>,
  explain: (error: unknown) => Error = asError,
): Promise<readonly (A | Failed)[]> {
  const settled = async (ref: R): Promise<A | Failed> => {
    try {
      return await ask(ref);
    } catch (error) {
      return failed(explain(error));
    }
  };
  return Promise.all(refs.map(settled));
}

/** One of a batch that could not be answered. */
export function failed(error: Error): Failed {
  return { kind: "failed", effect: error instanceof EngineError ? error.effect : "unknown", error };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
