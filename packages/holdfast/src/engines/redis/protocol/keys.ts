/** Keys are the prefix and the name, with what Redis reads as a hash tag percent-encoded. */
export function keyOf(prefix: string, resource: string): string {
  if (!/[%{}]/.test(resource)) return prefix + resource;
  return (
    prefix + resource.replace(/[%{}]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  );
}

// Of what is kept beside the first key, in the order in which the script names them.
const KINDS = ["queue", "waiters", "shared", "fence", "gone", "ends", "tokens"] as const;

/** All keys of a resource share the slot of the first: its name is the others' hash tag. */
export function keysOf(key: string): string[] {
  return [key, ...KINDS.map((kind) => `{${key}}:${kind}`)];
}

/** The resource that a scanned key belongs to, and whether it is its first key; null for others. */
export function resourceOf(
  prefix: string,
  key: string,
): { readonly resource: string; readonly first: boolean } | null {
  const derived = /^\{(.+)\}:queue$/s.exec(key);
  const name = derived?.[1] ?? (key.startsWith("{") ? null : key);
  if (name === null || !name.startsWith(prefix)) return null;
  const resource = name
    .slice(prefix.length)
    .replace(/%(25|7B|7D)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return { resource, first: derived === null };
}
