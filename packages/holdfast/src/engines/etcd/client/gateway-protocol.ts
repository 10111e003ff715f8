import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { systemClock } from "../../../core/runtime/clock.js";
import type { EngineError } from "../../../errors.js";
import { malformed, noGateway, refusal, silence } from "./failure.js";

/**
 * What the gateway answered: a value, or one of a stream's values. Errors of an answer and of a stream
 * look different, and different again from version to version.
 */
export function valueIn(status: number, body: string): unknown {
  const reply = parsed(body);
  // A page of another server, or of a proxy that does not know it.
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

/** Null for what is no object: a proxy's page, or an answer cut short. */
export function parsed(body: string): object | null {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && !Array.isArray(value) ? value : null;
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
