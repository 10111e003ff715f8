import type { Locks } from "holdfast";
import type { Reporter } from "./reporter.js";

// Shorter waits are nobody's concern, and telling of them would flicker.
const FIRST_LOOK_MS = 500;
const LOOK_EVERY_MS = 1_000;

/** Tells for whom we wait, until stopped. */
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
      // Whether the engine answers is for the acquire to say; this is only for people.
    }
    if (!stopped) timer = setTimeout(look, LOOK_EVERY_MS);
  }
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
