import type { Harness, Law, Need } from "./harness.js";
import { LawContext } from "./law-context.js";
import { within } from "./timing.js";

/** A law that never ends counts as broken. */
const LAW_MS = 60_000;

export type LawBody = (context: LawContext) => Promise<void>;

/** Makes a law of a function: the backend is empty before it, and nothing is left open after it. */
export function law(
  id: string,
  title: string,
  needs: readonly Need[],
  body: LawBody,
  limitMs = LAW_MS,
): Law {
  const run = async (harness: Harness) => {
    await harness.reset();
    const context = new LawContext(harness);
    try {
      await within(limitMs, body(context), `${id} on ${harness.name}`);
    } finally {
      await context.tearDown();
    }
  };
  return { id, title, needs, run };
}
