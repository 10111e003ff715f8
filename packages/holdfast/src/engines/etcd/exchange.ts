import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../clock.js";
import type { EngineError } from "../../errors.js";
import { silence } from "./failure.js";

/** What the gateway answers with: a value, one of a stream's values, or an error. */
export interface Reply<T> {
  readonly result?: T;
  readonly error?: string | { readonly message?: string };
  readonly message?: string;
}

/** Errors of one answer and of a stream look different, and different again from version to version. */
export function errorIn(reply: Reply<unknown> | null, status: number, body: string): string | null {
  if (reply === null) return `${status} ${body.slice(0, 200)}`;
  const { error } = reply;
  if (typeof error === "object") return error.message ?? "an error without a message";
  if (status === 200 && error === undefined) return null;
  return error ?? reply.message ?? `status ${status}`;
}

/** Null for what is no object: a proxy's page, or an answer cut short. */
export function parsed<T extends object>(body: string): T | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" ? (value as T) : null;
  } catch {
    return null;
  }
}

const LATE = "no answer in time";

export function late(): Error {
  return new Error(LATE);
}

export function isLate({ cause }: EngineError): boolean {
  return cause instanceof Error && cause.message === LATE;
}

export function answerTo(
  request: ClientRequest,
  text: string,
  timeMs: number,
  where: string,
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    // A connection that is still being made has carried nothing.
    let sent = false;
    request.on("socket", (socket: Socket & { readonly encrypted?: boolean }) => {
      if (!socket.connecting) sent = true;
      else socket.once(socket.encrypted ? "secureConnect" : "connect", () => (sent = true));
    });
    const timer = systemClock.timer(timeMs, () => request.destroy(late()), true);
    const fail = (error: Error) => {
      timer.cancel();
      reject(silence(where, error, sent));
    };
    request.on("error", fail);
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", fail);
      response.on("end", () => {
        timer.cancel();
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
      });
    });
    request.end(text);
  });
}

export function lines(response: IncomingMessage, onLine: (line: string) => void): void {
  let rest = "";
  response.setEncoding("utf8");
  response.on("error", () => {});
  response.on("data", (chunk: string) => {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts) if (line !== "") onLine(line);
  });
}
