/** ` Did you mean "run"?`, or nothing where no known word is near. */
export function orMeant(word: string, known: readonly string[]): string {
  const most = word.length <= 4 ? 1 : 2;
  const near = known
    .map((candidate) => ({ candidate, apart: editsBetween(word, candidate) }))
    .filter(({ candidate, apart }) => apart <= most || isBeginning(word, candidate))
    .sort((a, b) => a.apart - b.apart)[0];
  return near === undefined ? "" : ` Did you mean "${near.candidate}"?`;
}

function isBeginning(word: string, candidate: string): boolean {
  return word.replace(/^-+/, "").length >= 2 && candidate.startsWith(word);
}

/** Insertions, deletions, replacements and swaps of neighbours, each counting one. */
function editsBetween(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) least = Math.min(least, beforeLast[j - 2]! + 1);
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
