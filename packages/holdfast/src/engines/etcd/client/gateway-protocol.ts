import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../../core/runtime/clock.js";
import type { EngineError } from "../../../errors.js";
import { malformed, noAnswer, noGateway, refusal } from "./failure.js";

/**
 * The value of an answer, or one value of a stream. Errors in answers and in streams have different
 * shapes, which also differ between versions.
 */
export function valueIn(status: number, body: string): unknown {
  const reply = parsed(body);
  // The page of another server, or of a proxy that does not know the gateway.
  if (reply === null && status === 404) throw noGateway();
  if (reply === null) throw malformed(`status ${status}, and no JSON object`);
  const { error, message, result } = reply as Readonly<Record<string, unknown>>;
  const said = typeof error === "object" && error !== null ? (error as Said).message : error;
  if (said === undefined && status === 200) return result ?? reply;
  const words = said ?? message;
  if (typeof words !== "string") throw malformed(`status ${status}, and no word why`);
  throw refusal(words);
}

interface Said {
  readonly message?: unknown;
}

/** Null for a body that is not an object: a proxy's page, or an answer that was cut off. */
export function parsed(body: string): object | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

const LATE = "no answer in time";

export function lateError(): Error {
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
    // Nothing is sent before the connection is open.
    let sent = false;
    request.on("socket", (socket: Socket & { readonly encrypted?: boolean }) => {
      if (!socket.connecting) sent = true;
      else socket.once(socket.encrypted ? "secureConnect" : "connect", () => (sent = true));
    });
    const timer = systemClock.timer(timeMs, () => request.destroy(lateError()), true);
    const fail = (error: Error) => {
      timer.cancel();
      reject(noAnswer(where, error, sent));
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
