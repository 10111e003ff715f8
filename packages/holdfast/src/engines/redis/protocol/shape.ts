import { EngineError } from "../../../errors.js";
import { clientError } from "./client-error.js";

/**
 * A client may give something else than our script's answer: the word with which the server queues
 * a command in a transaction, or text as bytes. Such an answer does not say what was done.
 */
export function unexpectedAnswer(answer: unknown): EngineError {
  if (answer === "QUEUED") {
    return new EngineError(
      "a transaction (MULTI) is open on the client, and Redis has put this call into it; " +
        "end the transaction, or give the locks a client of their own",
      { effect: "unknown", retryable: true },
    );
  }
  const details = answer instanceof Error ? { cause: clientError(answer) } : {};
  return new EngineError(`the Redis client gave ${kindOf(answer)}, which is not a valid answer`, {
    ...details,
    effect: "unknown",
    retryable: false,
  });
}

/** Only the kind of the answer: its content may be secret and must not reach a message. */
function kindOf(answer: unknown): string {
  if (answer === null) return "null";
  if (Array.isArray(answer)) return `a list of ${answer.length}`;
  if (typeof answer === "string") return `a string of ${answer.length} characters`;
  if (typeof answer !== "object") return `a value of type ${typeof answer}`;
  return Buffer.isBuffer(answer) ? "a Buffer" : `an object (${answer.constructor?.name})`;
}

export function isListOf(answer: unknown, length: number): answer is readonly unknown[] {
  return Array.isArray(answer) && answer.length === length;
}

/** Whether the answer is a list of this length, with this word first. */
export function isTagged(
  answer: unknown,
  word: string,
  length: number,
): answer is readonly [string, ...unknown[]] {
  return isListOf(answer, length) && answer[0] === word;
}

/** Some clients are configured to give numbers as strings. */
export function isNumber(answer: unknown, number: 0 | 1): boolean {
  return answer === number || answer === String(number);
}

export function isYes(answer: unknown): boolean {
  if (isNumber(answer, 1)) return true;
  if (isNumber(answer, 0)) return false;
  throw unexpectedAnswer(answer);
}

/**
 * Tokens come as text, because they are too large for some clients' numbers. A token is at least
 * the clock in microseconds since 1970, so a small count that a client gives as text is no token.
 * From 2^53 on, the script could not tell two tokens apart.
 */
export function isToken(answer: unknown): answer is string {
  return (
    typeof answer === "string" &&
    /^[1-9]\d{6,15}$/.test(answer) &&
    Number.isSafeInteger(Number(answer))
  );
}

/** The answer as a whole number, not below least. */
export function numberIn(answer: unknown, least: number): number {
  const isText = typeof answer === "string" && /^(0|-?[1-9]\d*)$/.test(answer);
  const number = isText ? Number(answer) : answer;
  if (Number.isSafeInteger(number) && (number as number) >= least) return number as number;
  throw unexpectedAnswer(answer);
}

export function textIn(answer: unknown): string {
  if (typeof answer === "string") return answer;
  throw unexpectedAnswer(answer);
}

export function listIn(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  throw unexpectedAnswer(answer);
}
