import type { Locks } from "holdfast";
import type { Reporter } from "./reporter.js";

// A shorter wait is not worth a line, which would only flicker.
const FIRST_LOOK_MS = 500;
const LOOK_EVERY_MS = 1_000;

/** Reports for whom we wait, until the returned function is called. */
export function watchHolders(
  locks: Locks,
  resource: string,
  startedAt: number,
  reporter: Reporter,
): () => void {
  let stopped = false;
  let timer = setTimeout(look, FIRST_LOOK_MS);
  async function look(): Promise<void> {
    try {
      const view = await locks.inspect(resource);
      if (!stopped) reporter.waiting(view, performance.now() - startedAt);
    } catch {
      // The acquire reports a failing engine. This view is for people only.
    }
    if (!stopped) timer = setTimeout(look, LOOK_EVERY_MS);
  }
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
