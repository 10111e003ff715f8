/** The fields of a driver's error that contain no statement, parameter or row. */
const FIELDS = ["code", "errno", "sqlState", "severity"] as const;

// A grantId: as hexadecimal digits, as a UUID, and inside the hexadecimal text of a statement.
const IDS = /[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12,}/gi;
// Bytes of a row as MySQL shows them, and what MySQL quotes from a statement.
const VALUES = /\b(entry|value:?|near) '.*'/is;

/**
 * A driver's error without its secrets. The original holds the statement with its values, details
 * of rows, and the client. GrantIds are among them, and whoever knows a grantId can end the grant.
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
