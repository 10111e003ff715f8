import { systemClock, type Timer } from "../../clock.js";
import type { Failed } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { explain } from "./failure.js";

/**
 * An answer for each. One that fails is an answer too, and does not decide for the others; nor does
 * one that is late, where there is a patience.
 */
export async function each<R, A>(
  refs: readonly R[],
  patienceMs: number,
  ask: (ref: R) => Promise<A>,
): Promise<readonly (A | Failed)[]> {
  const asked = refs.map((ref) => ask(ref).catch(failed));
  if (patienceMs === Infinity || refs.length === 1) return Promise.all(asked);
  let timer: Timer | undefined;
  const late = new Promise<Failed>((give) => {
    timer = systemClock.timer(patienceMs, () => give(failed(lateness(patienceMs))), false);
  });
  try {
    return await Promise.all(asked.map((answer) => Promise.race([answer, late])));
  } finally {
    timer?.cancel();
  }
}

function failed(error: unknown): Failed {
  const failure = explain(error);
  const effect = failure instanceof EngineError ? failure.effect : "unknown";
  return { kind: "failed", effect, error: failure };
}

function lateness(patienceMs: number): EngineError {
  const message = `this shard did not answer within ${patienceMs} ms, and others did`;
  return new EngineError(message, { effect: "unknown", retryable: true });
}
