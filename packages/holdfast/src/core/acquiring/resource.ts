import { UsageError } from "../../errors.js";

/** The longest name that fits in every backend with room for a prefix: 1 KiB of UTF-8. */
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
  // A lone surrogate has no UTF-8 form, so two such names would become one at the backend.
  if (!name.isWellFormed()) {
    throw new UsageError(
      `a resource name must be well-formed Unicode, got ${JSON.stringify(name)}`,
    );
  }
}

export interface Glob {
  test(name: string): boolean;
}

/**
 * `*` matches any run of characters, `?` matches one; every other character matches itself. This is
 * no regular expression, because that would try every way to split a name among the stars: three
 * stars can take minutes. Here, once a star has matched, earlier stars are not tried again.
 */
export function compileGlob(glob: string): Glob {
  // Split into characters: a question mark matches a whole one, not half of a surrogate pair.
  const pattern = [...glob];
  return { test: (name) => matches(pattern, name) };
}

function matches(pattern: readonly string[], name: string): boolean {
  let [at, i] = [0, 0];
  // The position of the last star, and where in the name its run ends so far.
  let [star, runEnd] = [-1, 0];
  while (i < name.length) {
    const char = charAt(name, i);
    if (pattern[at] === "*") {
      star = at++;
      runEnd = i;
    } else if (pattern[at] === "?" || pattern[at] === char) {
      at++;
      i += char.length;
    } else if (star >= 0) {
      at = star + 1;
      runEnd += charAt(name, runEnd).length;
      i = runEnd;
    } else {
      return false;
    }
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

/** The whole character at i, never half of a surrogate pair. */
function charAt(text: string, i: number): string {
  return String.fromCodePoint(text.codePointAt(i)!);
}
