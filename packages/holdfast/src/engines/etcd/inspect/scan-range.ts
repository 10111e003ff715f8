// Counting this many keys takes etcd less time than reading a page.
const NEAR = 500;
const FEW = 100;
const AHEAD = 2;
const LAST = 0x10_ffff;
const SURROGATES = { first: 0xd800, end: 0xe000 } as const;

/** A range of keys that a list still has to read, from its first key until before its end. */
export interface ScanRange {
  readonly from: string;
  readonly until: string;
}

/** One read of a scan range: its first and last key, and how many keys the range has. */
export interface ScannedPage {
  readonly first: string;
  readonly last: string;
  readonly count: number;
}

/**
 * A nearer end for the range of the next page, or the same end. etcd walks every key of a range to
 * count it, however few it returns. A list that asked for all remaining keys each time would make
 * etcd walk half of all keys for each page. So the range of the next page ends about twice as far
 * ahead as this page went.
 *
 * The end lies between two resources, never behind the slash after a name. `names` is how many
 * characters of a key come before the name.
 */
export function narrowed(end: string, { first, last, count }: ScannedPage, names: number): string {
  if (count <= NEAR) return end;
  const [from, to] = [[...first], [...last]];
  const at = from.findIndex((char, i) => char !== to[i]);
  const common = to.slice(0, at);
  // All keys are of one resource, or in the folder of another program.
  if (at < 0 || at >= to.length || common.lastIndexOf("/") >= names) return end;
  const [low, high] = [codeOf(from[at]!), codeOf(to[at]!)];
  const ahead = high + AHEAD * (high - low + 1);
  // Keys of other programs need not be text, so they may be out of order after decoding.
  if (high <= low || ahead > LAST) return end;
  const nearer = common.join("") + charOf(ahead);
  return isBefore(nearer, end) ? nearer : end;
}

/**
 * The end of the range after one that was read to its end; null for the end of all keys. After a
 * range with keys, the next range has the same width, or twice the width if the keys were few. An
 * empty range may mean that no more keys begin with the same characters. Then the next range is the
 * rest of the keys with the same characters but the last, and after that the next of those
 * characters.
 */
export function widened({ from, until }: ScanRange, count: number, names: number): string | null {
  const [begun, chars] = [[...from], [...until]];
  const isRest = begun.length > chars.length;
  const last = codeOf(chars.pop()!);
  if (count > 0 || isRest) {
    const parent = chars.join("");
    const width = from.startsWith(parent) ? last - codeOf(begun[chars.length] ?? "\0") : 1;
    const next = last + Math.max(1, count < FEW && !isRest ? 2 * width : width);
    if (next <= LAST) return parent + charOf(next);
  }
  while (chars.length > names) {
    const code = codeOf(chars.pop()!);
    if (code < LAST) return chars.join("") + charOf(code + 1);
  }
  return null;
}

/** In the order of etcd, which is the order of bytes. "\0" as an end is the end of all keys. */
function isBefore(key: string, end: string): boolean {
  return end === "\0" || Buffer.compare(Buffer.from(key), Buffer.from(end)) < 0;
}

function codeOf(char: string): number {
  return char.codePointAt(0)!;
}

/** Halves of a surrogate pair are not characters. */
function charOf(code: number): string {
  const { first, end } = SURROGATES;
  return String.fromCodePoint(code >= first && code < end ? end : code);
}
