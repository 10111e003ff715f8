import { UsageError } from "./errors.js";

/** The longest name every backend takes with room for a prefix: 1 KiB of UTF-8. */
export const MAX_RESOURCE_BYTES = 1024;

/** Names are taken as they are: no trimming, no case folding, no Unicode normalisation. */
export function checkResource(name: unknown): asserts name is string {
  if (typeof name !== "string") {
    throw new UsageError(`a resource name must be a string, got ${typeof name}`);
  }
  if (name.length === 0) {
    throw new UsageError('a resource name must not be empty; use something like "invoice:42"');
  }
  // UTF-8 never takes more than three bytes for one UTF-16 unit, so short names need no counting.
  if (name.length * 3 > MAX_RESOURCE_BYTES && Buffer.byteLength(name) > MAX_RESOURCE_BYTES) {
    throw new UsageError(
      `a resource name may take ${MAX_RESOURCE_BYTES} bytes as UTF-8, got ${Buffer.byteLength(name)}; ` +
        "use a hash of the long part",
    );
  }
  if (name.includes("\0")) {
    throw new UsageError(`a resource name must not contain NUL, got ${JSON.stringify(name)}`);
  }
  // Half of a surrogate pair has no UTF-8 form: two such names would become one at the backend.
  if (!name.isWellFormed()) {
    throw new UsageError(
      `a resource name must be well-formed Unicode, got ${JSON.stringify(name)}`,
    );
  }
}

/** `*` is any run of characters, `?` is one; everything else is itself. */
export function globToRegExp(glob: string): RegExp {
  const body = glob.replace(/[.+^${}()|[\]\\*?]/g, (c) =>
    c === "*" ? ".*" : c === "?" ? "." : `\\${c}`,
  );
  return new RegExp(`^${body}$`, "su");
}
