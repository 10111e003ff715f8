import { setTimeout as sleep } from "node:timers/promises";
import { channels, connect, EngineError, type Events, type Locks } from "holdfast";

// However short the wait: a machine that is busy needs a moment to connect at all.
const SHORTEST_MS = 1_000;
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 2_000];
// A timer that is set for longer fires at once, and no try takes so long.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ConnectLimits {
  readonly waitMs: number;
  /** Hears why there is no connection yet, whenever that changes. */
  readonly onFailure: (why: string) => void;
  /** Ends the waiting; then there are no locks. */
  readonly signal: AbortSignal;
}

/**
 * Connects, for as long as somebody waits. The library gives up after some seconds, at the latest, and on most
 * engines as soon as a connection is refused; but a server that is not there may be on its way, and
 * whoever waits for a lock for ever waits for its server, too.
 */
export async function connectPatiently(
  url: string,
  options: NonNullable<Parameters<typeof connect>[1]>,
  { waitMs, onFailure, signal }: ConnectLimits,
): Promise<Locks | null> {
  const limitMs = Math.max(waitMs, SHORTEST_MS);
  const startedAt = performance.now();
  const leftMs = () => limitMs - (performance.now() - startedAt);
  using heard = new LastFailure();
  let [told, pauseMs] = ["", SHORTEST_PAUSE_MS];
  for (;;) {
    const connecting = connect(url, options);
    // Whatever comes of it after the race ends with this process.
    connecting.catch(() => {});
    try {
      return await before(connecting, leftMs(), signal, () => notInTime(url, limitMs, heard.last));
    } catch (error) {
      // Half of what is left: the other half is for the try.
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS, leftMs() / 2);
      const isLast = waitMs === 0 || pauseMs < SHORTEST_PAUSE_MS;
      if (!(error instanceof EngineError) || !mayComeYet(error) || isLast) throw error;
      if (error.message !== told) onFailure(error.message);
      told = error.message;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return null;
  }
}

/** Time makes no table, no right and no password. */
function mayComeYet({ retryable, reason }: EngineError): boolean {
  return retryable && reason !== "not-prepared";
}

async function before<T>(
  work: Promise<T>,
  leftMs: number,
  signal: AbortSignal,
  late: () => Error,
): Promise<T | null> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const contenders: Promise<T | null>[] = [
    work,
    new Promise((resolve) => {
      if (signal.aborted) resolve(null);
      else signal.addEventListener("abort", () => resolve(null), { signal: over.signal });
    }),
  ];
  if (leftMs <= LONGEST_TIMER_MS) {
    const lateness = sleep(leftMs, undefined, { ref: false, signal: either }).then(() => {
      throw late();
    });
    lateness.catch(() => {});
    contenders.push(lateness);
  }
  try {
    return await Promise.race(contenders);
  } finally {
    over.abort();
  }
}

function notInTime(url: string, limitMs: number, cause: Error | null): EngineError {
  const because = cause === null ? "it does not answer" : said(cause);
  return new EngineError(`no connection to ${placeOf(url)} within ${limitMs} ms: ${because}`, {
    ...{ effect: "none", retryable: true, reason: "unreachable", cause },
  });
}

/** A host with several addresses is refused by each of them; what they said is in the code alone. */
function said({ message, code }: Error & { readonly code?: unknown }): string {
  return message !== "" ? message : typeof code === "string" ? code : "it does not answer";
}

/** Scheme and hosts: everything else may be secret. */
function placeOf(url: string): string {
  const [, scheme = "the engine", hosts = ""] =
    /^([\w+-]+):(?:\/\/(?:[^/?#]*@)?([^/?#@]*))?/.exec(url) ?? [];
  return hosts === "" ? scheme : `${scheme}://${hosts}`;
}

/** What kept a client from connecting while it goes on trying: it tells nobody but who listens. */
class LastFailure {
  last: Error | null = null;
  readonly #listen = (message: unknown) => {
    const { during, error } = message as Events["failed"];
    if (during === "connection" && error instanceof Error) this.last = error;
  };

  constructor() {
    channels.failed.subscribe(this.#listen);
  }

  [Symbol.dispose](): void {
    channels.failed.unsubscribe(this.#listen);
  }
}
