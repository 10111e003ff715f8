import type { Failed } from "../engine.js";
import { EngineError } from "../errors.js";

/**
 * Asks for each ref. A failure becomes the answer for its own ref and does not affect the others.
 */
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

/** The answer for one ref of a batch whose call failed. */
export function failed(error: Error): Failed {
  return { kind: "failed", effect: error instanceof EngineError ? error.effect : "unknown", error };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
