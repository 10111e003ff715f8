// What a test about the repository found, and what to do about it. A comparison of
// lists would show both lists, and no next step.
import assert from "node:assert/strict";

/** todo: a sentence that says what to do about each line of `found`. */
export function assertNone(found: readonly string[], todo: string): void {
  if (found.length > 0) assert.fail(`${todo}:\n  ${found.join("\n  ")}`);
}
