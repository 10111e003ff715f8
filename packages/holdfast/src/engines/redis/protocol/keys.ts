/**
 * A key is the prefix and the resource's name. Braces are percent-encoded, because Redis would read
 * them as a hash tag; so is the percent sign.
 */
export function keyOf(prefix: string, resource: string): string {
  if (!/[%{}]/.test(resource)) return prefix + resource;
  return (
    prefix + resource.replace(/[%{}]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
  );
}

// The kinds of keys beside the first one, in the order of the script.
const KINDS = ["queue", "waiters", "shared", "fence", "gone", "ends", "tokens"] as const;

/** All keys of a resource are in one slot: the first key is the hash tag of the others. */
export function keysOf(key: string): string[] {
  return [key, ...KINDS.map((kind) => `{${key}}:${kind}`)];
}

/** The resource of a scanned key, and whether the key is its first one; null for any other key. */
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
