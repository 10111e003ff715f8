/**
 * JSON has no bigint, and JSON.stringify throws on one. Lets an object write its tokens as decimal
 * strings. The member is hidden, so that the object is compared and printed as before.
 */
export function writesAsJson<T extends object>(value: T): T {
  return Object.defineProperty(value, "toJSON", { value: withTokensAsText });
}

export function withTokensAsText(this: object): Record<string, unknown> {
  const entries = Object.entries(this).map(([key, value]) => [
    key,
    typeof value === "bigint" ? String(value) : value,
  ]);
  return Object.fromEntries(entries);
}
