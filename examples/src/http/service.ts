// A lock in an HTTP handler. http.test.ts plays it with a real Redis.
// #region service
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "holdfast";
import { answer, answerError } from "./answers.js";

/** Work that ends when its signal aborts. */
export type Work = (name: string, signal: AbortSignal) => Promise<unknown>;

export function createService(locks: Locks, probe: Locks, work: Work): Server {
  return createServer((request, response) => {
    const name = request.url ?? "/";
    const handled =
      name === "/ready" ? ready(probe, response) : handle(locks, name, request, response, work);
    handled.catch((error: unknown) => answerError(response, error));
  });
}
// #endregion

// #region handler
async function handle(
  locks: Locks,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
  work: Work,
): Promise<void> {
  request.resume();
  const hungUp = new AbortController();
  response.once("close", () => hungUp.abort()); // also after the answer, where it changes nothing
  const options = {
    waitMs: 500, // a client that waits for an answer does not wait for long
    callTimeoutMs: 1_000, // each call to the backend, also the release
    signal: hungUp.signal, // nobody waits for the lock any more
  };
  const done = await locks.run(`http:${name}`, options, (lease) =>
    work(name, AbortSignal.any([lease.signal, hungUp.signal])),
  );
  answer(response, 200, { done });
}
// #endregion

// #region ready
/** For the load balancer. A probe with a short callTimeoutMs answers soon while the backend hangs. */
async function ready(probe: Locks, response: ServerResponse): Promise<void> {
  await probe.inspect("health");
  answer(response, 200, { ready: true });
}
// #endregion

// #region shut-down
const LAST_WORDS_MS = 1_000;

/** Lets running work end for limitMs, and then tells it to stop. */
export async function shutDown(server: Server, locks: Locks, limitMs: number): Promise<void> {
  const ended = once(server, "close");
  server.close(); // takes no new connections; what runs goes on
  // A connection that its client keeps open is idle after its answer.
  const idle = setInterval(() => server.closeIdleConnections(), 100);
  await Promise.race([ended, sleep(limitMs, undefined, { ref: false })]);
  await locks.close(); // aborts every lease.signal, waits for a second, releases what it can
  await Promise.race([ended, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
  server.closeAllConnections(); // what is open now is idle, or does not listen to its signal
  await ended;
  clearInterval(idle);
}
// #endregion
