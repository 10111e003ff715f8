import { setTimeout as sleep } from "node:timers/promises";
import { channels, connect, EngineError, type Events, type Locks } from "holdfast";

// The least, even for a shorter --wait: a busy machine needs a moment to connect at all.
const SHORTEST_MS = 1_000;
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [50, 2_000];
// Node fires a longer timer at once. No attempt takes this long.
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface ConnectLimits {
  readonly waitMs: number;
  /** Called with the reason why there is no connection yet, each time the reason changes. */
  readonly onFailure: (why: string) => void;
  /** Ends the waiting; the result is then null. */
  readonly signal: AbortSignal;
}

/**
 * Tries to connect until --wait is over. The library itself gives up after a few seconds, and on
 * most engines as soon as a connection is refused. But the server may be starting, and a caller who
 * waits for a lock without a limit also waits for its server.
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
    // After the race nobody reads this promise, so its rejection must not end the process.
    connecting.catch(() => {});
    try {
      return await before(connecting, leftMs(), signal, () => notInTime(url, limitMs, heard.last));
    } catch (error) {
      // Half of the time that is left. The other half is for the next attempt.
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

/** Waiting helps against a missing server, but not against a missing table, right or password. */
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

/** When each of a host's addresses refuses, Node's error has a code and an empty message. */
function said({ message, code }: Error & { readonly code?: unknown }): string {
  return message !== "" ? message : typeof code === "string" ? code : "it does not answer";
}

/** Scheme and hosts only: every other part of a URL may be secret. */
function placeOf(url: string): string {
  const [, scheme = "the engine", hosts = ""] =
    /^([\w+-]+):(?:\/\/(?:[^/?#]*@)?([^/?#@]*))?/.exec(url) ?? [];
  return hosts === "" ? scheme : `${scheme}://${hosts}`;
}

/** The last error of a client that keeps trying to connect. Clients report it by an event only. */
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
