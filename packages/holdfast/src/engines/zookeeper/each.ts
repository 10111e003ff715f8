import type { Failed } from "../../engine.js";
import { EngineError } from "../../errors.js";

/** An answer for each; one that fails is an answer too, and does not decide for the others. */
export function each<R, A>(
  refs: readonly R[],
  ask: (ref: R) => Promise<A>,
): Promise<readonly (A | Failed)[]> {
  return Promise.all(
    refs.map((ref) =>
      ask(ref).catch((error: unknown): Failed => {
        const known = error instanceof Error ? error : new Error(String(error));
        const effect = known instanceof EngineError ? known.effect : "unknown";
        return { kind: "failed", effect, error: known };
      }),
    ),
  );
}
