// A service that starts while its backend is away.
// #region connecting
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectOptions, connect, EngineError, type Locks } from "holdfast";

const LONGEST_PAUSE_MS = 5_000;

/** Tries until the backend is there. The signal ends the trying, as when the service shuts down. */
export async function connectWhenThere(
  url: string,
  options: ConnectOptions,
  signal: AbortSignal,
): Promise<Locks> {
  for (let pauseMs = 100; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await connect(url, options);
    } catch (error) {
      // A wrong password stays wrong: the program must end, and a person must see why.
      if (!(error instanceof EngineError && error.retryable)) throw error;
      console.error(`no locks yet: ${error.message}`);
      await sleep(pauseMs, undefined, { signal });
    }
  }
}
// #endregion
