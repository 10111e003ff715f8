/** What of a driver's error is no statement, no parameter and no row. */
const FIELDS = ["code", "errno", "sqlState", "severity"] as const;

// A grantId: as digits, as a UUID, and within the digits of a statement of ours.
const IDS = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12,}/gi;
// Bytes of a row, as MySQL shows them, and what it quotes from a statement.
const VALUES = /\b(entry|value:?|near) '.*'/is;

/**
 * A driver's error as others may see it. The error itself has the statement with its values, details of
 * rows, and the client; grantIds are among them, and a grantId is all that it takes to end a grant.
 */
export function redactedCause(error: unknown): Error {
  const { name = "Error" } = error as Partial<Error>;
  const cause = Object.assign(new Error(redactedMessage(error)), { name });
  const fields = error as Readonly<Record<string, unknown>>;
  for (const field of FIELDS) {
    if (fields[field] !== undefined) Object.assign(cause, { [field]: fields[field] });
  }
  return cause;
}

export function redactedMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(VALUES, "$1 …").replace(IDS, "…");
}
