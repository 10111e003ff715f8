// What a service answers while somebody else holds the lock, and when the backend fails.
import type { ServerResponse } from "node:http";

// #region answers
import { AcquireTimeoutError, ClosedError, EngineError } from "holdfast";

export function answerError(response: ServerResponse, error: unknown): void {
  if (error instanceof AcquireTimeoutError) {
    // No tokens: a client of the service needs none.
    const holders = error.holders.map(({ label, remainingMs }) => ({ label, remainingMs }));
    answer(response, 409, { error: "busy", holders });
  } else if (error instanceof EngineError || error instanceof ClosedError) {
    answer(response, 503, { error: "unavailable" }); // the message names hosts: log it, keep it
  } else {
    // LeaseLostError too: the work may be done, so do not tell the client to try again.
    answer(response, 500, { error: "failed" });
  }
}

export function answer(response: ServerResponse, status: number, body: unknown): void {
  if (response.headersSent || response.destroyed) return; // the client has hung up
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
// #endregion
