import { EngineError } from "../../errors.js";
import type { RawAnswer } from "./database.js";

/**
 * Answers are read by their exact shape. Another shape may come from another version of the
 * routines, from a proxy, or from a client with its own parsers; then nobody knows what was done.
 */
export function unreadable(what: string): EngineError {
  return new EngineError(`the database's answer cannot be read: ${what}`, {
    effect: "unknown",
    retryable: true,
  });
}

/** The value in the only column of the only row. */
export function onlyAnswer(rows: unknown): unknown {
  if (!Array.isArray(rows) || rows.length !== 1) throw unreadable("it is not one row");
  const row: unknown = rows[0];
  const values = typeof row === "object" && row !== null ? Object.values(row) : [];
  if (values.length !== 1) throw unreadable("its row has not one column");
  return values[0];
}

/** JSON, as text or as the client's parser has read it. */
export function json(answer: unknown): unknown {
  const text = answer instanceof Uint8Array ? Buffer.from(answer).toString() : answer;
  if (typeof text !== "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw unreadable("it is not JSON");
  }
}

export function list(value: unknown, length?: number): RawAnswer {
  if (!Array.isArray(value)) throw unreadable("it is not a list");
  if (length !== undefined && value.length !== length) {
    throw unreadable(`${value.length} values are in a list for ${length}`);
  }
  return value;
}

/** A list of lists, one answer for each item that was asked. */
export function lists(value: unknown, length?: number): readonly RawAnswer[] {
  return list(value, length).map((one) => list(one));
}

export function count(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw unreadable("it has no number where there must be one");
}

/** Tokens travel as text, because JSON numbers are not exact enough. */
export function token(value: unknown): bigint {
  if (typeof value === "string" && /^\d{1,19}$/.test(value)) return BigInt(value);
  throw unreadable("it has no token where there must be one");
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw unreadable("it has no text where there must be some");
}

export function oneOf<T>(value: unknown, ...allowed: readonly T[]): T {
  const known = allowed.find((one) => one === value);
  if (known === undefined) throw unreadable(`it has none of ${allowed.join(", ")}`);
  return known;
}
