import { list, onlyAnswer } from "../../engine-kit/sql/shape.js";

/**
 * The one value that a routine selects. A call returns the rows of its SELECT, and then its
 * status. A user's pool may nest each row's columns under the name of their table (nestTables), or
 * return bytes for every value (typeCast: false).
 */
export function answerOf(results: unknown): unknown {
  const found = onlyAnswer(list(results, 2)[0]);
  const value = isNested(found) ? onlyAnswer([found]) : found;
  return value instanceof Uint8Array ? Buffer.from(value).toString() : value;
}

function isNested(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return !Array.isArray(value) && !(value instanceof Uint8Array);
}
