// Counting so many takes etcd less time than reading a page.
const NEAR = 500;
const FEW = 100;
const AHEAD = 2;
const LAST = 0x10_ffff;
const SURROGATES = { first: 0xd800, end: 0xe000 } as const;

/** Keys from one on, until before another. */
export interface Stretch {
  readonly from: string;
  readonly until: string;
}

/** What was told of the keys in a stretch: from the first to the last, of so many. */
export interface Told {
  readonly first: string;
  readonly last: string;
  readonly count: number;
}

/**
 * Where the next page need not look further, or the end of the stretch as it is. etcd walks every key
 * of a range to count it, however few it tells: a list that asked for all the rest each time would make
 * it walk half of all keys for each page. So the end is put about twice as far ahead as this page went.
 * It lies between resources, never behind the slash that follows a name; names begin after so many
 * characters.
 */
export function narrowed(end: string, { first, last, count }: Told, names: number): string {
  if (count <= NEAR) return end;
  const [from, to] = [[...first], [...last]];
  const at = from.findIndex((char, i) => char !== to[i]);
  const common = to.slice(0, at);
  // All of one resource, or of another program's folder.
  if (at < 0 || at >= to.length || common.lastIndexOf("/") >= names) return end;
  const [low, high] = [codeOf(from[at]!), codeOf(to[at]!)];
  const ahead = high + AHEAD * (high - low + 1);
  // Keys of other programs need not be text, and what was made of them need not be in order.
  if (high <= low || ahead > LAST) return end;
  const nearer = common.join("") + charOf(ahead);
  return isBefore(nearer, end) ? nearer : end;
}

/**
 * The end of the stretch after one that was told to its end; null for the end of all. Where there were
 * keys, as many may be on the next stretch of the same width, and where there were few, on one twice as
 * wide. Where there were none, the characters that are in use at this place may be over: then it is the
 * rest of all that begins with the same characters before it, and after that the next one of those.
 */
export function widened({ from, until }: Stretch, count: number, names: number): string | null {
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

/** In the order of etcd, which is that of bytes; "\0" as an end is the end of everything. */
function isBefore(key: string, end: string): boolean {
  return end === "\0" || Buffer.compare(Buffer.from(key), Buffer.from(end)) < 0;
}

function codeOf(char: string): number {
  return char.codePointAt(0)!;
}

/** Halves of a surrogate pair are no characters. */
function charOf(code: number): string {
  const { first, end } = SURROGATES;
  return String.fromCodePoint(code >= first && code < end ? end : code);
}
