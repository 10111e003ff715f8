import { list, onlyAnswer } from "../../engine-kit/sql/shape.js";

/**
 * What a routine selects: one value. A call gives the rows of its SELECT, and then how it ended. A user's
 * pool may put each row's columns under the name of their table (nestTables), or give bytes for every
 * value (typeCast: false).
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
