/** Wrong values in place of the one value that a routine returns. */
const VALUES: Readonly<Record<string, (answer: unknown) => unknown>> = {
  null: () => null,
  "a number": () => 7,
  "a word": () => "granted",
  "half of its text": (answer) => JSON.stringify(answer).slice(0, -1),
  "an object": () => ({ answer: "granted" }),
  "an empty list": () => [],
  "a list of another word": () => ["QUEUED"],
  "a short list": (answer) => shorter(answer),
  "a list of too many": (answer) => (Array.isArray(answer) ? [...answer, answer[0] ?? 1] : []),
};

/** Wrong results in place of its row. */
const ROWS: Readonly<Record<string, unknown>> = {
  "no row": [],
  "a row without its column": [{}],
  "a row of two columns": [{ answer: "[]", more: 1 }],
  "a string for the rows": "rows",
  "nothing for the rows": undefined,
};

export const SHAPES: readonly string[] = [...Object.keys(VALUES), ...Object.keys(ROWS)];

/** The rows of a result, whose one column has this name, in a wrong shape. */
export function garbled(rows: unknown, column: string, shape: string | null): unknown {
  if (shape === null) return rows;
  if (shape in ROWS) return ROWS[shape];
  return (rows as Record<string, unknown>[]).map((row) => {
    const answer = row[column];
    const isText = typeof answer === "string";
    const wrong = VALUES[shape]!(isText ? JSON.parse(answer) : answer);
    return { [column]: isText && typeof wrong === "object" ? JSON.stringify(wrong) : wrong };
  });
}

/** Removes the last value of every innermost list. */
function shorter(answer: unknown): unknown {
  if (!Array.isArray(answer)) return [];
  return answer.length > 0 && answer.every((one) => Array.isArray(one))
    ? answer.map(shorter)
    : answer.slice(0, -1);
}
