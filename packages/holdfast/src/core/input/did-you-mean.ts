/** Names of other libraries and clients, and what they mean here; the first known one is meant. */
const OTHER_NAMES: Readonly<Record<string, readonly string[]>> = {
  timeout: ["waitMs", "callTimeoutMs"],
  timeoutms: ["waitMs", "callTimeoutMs"],
};
const MOST_MISTAKES = 2;
const LEAST_BEGINNING = 3;

/** `; did you mean "ttlMs"?`, or nothing where no known word is near. */
export function orMeant(word: string, known: readonly string[]): string {
  const meant = meantBy(word, known);
  return meant === undefined ? "" : `; did you mean "${meant}"?`;
}

function meantBy(word: string, known: readonly string[]): string | undefined {
  const plain = bare(word);
  const most = plain.length > 4 ? MOST_MISTAKES : 1;
  const other = Object.hasOwn(OTHER_NAMES, plain) ? OTHER_NAMES[plain] : undefined;
  return (
    known.find((one) => bare(one) === plain) ??
    other?.find((one) => known.includes(one)) ??
    known.find((one) => plain.length >= LEAST_BEGINNING && bare(one) === `${plain}ms`) ??
    known.find((one) => plain.length >= LEAST_BEGINNING && isNear(plain, bare(one), most))
  );
}

/**
 * Whether at most this many insertions, deletions, replacements and swaps of neighbours turn a into
 * b.
 */
export function isNear(a: string, b: string, most: number): boolean {
  let same = 0;
  while (same < a.length && a[same] === b[same]) same++;
  const [x, y] = [a.slice(same), b.slice(same)];
  if (x === y) return true;
  if (most === 0) return false;
  const rest = (ofX: number, ofY: number) => isNear(x.slice(ofX), y.slice(ofY), most - 1);
  const isSwap = x[0] === y[1] && x[1] === y[0];
  return rest(1, 0) || rest(0, 1) || rest(1, 1) || (isSwap && rest(2, 2));
}

/** Without case and separators: other programs write renew_every_ms, or renew-every-ms. */
function bare(word: string): string {
  return word.toLowerCase().replace(/[-_]/g, "");
}
