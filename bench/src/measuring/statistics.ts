/** The value below which this fraction of all values lies; NaN without values. */
export function percentile(values: readonly number[], part: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}

/**
 * The percentile over groups that count equally, however many values each has. If one waiter is
 * served a thousand times while another waits, half of all waiting is long.
 */
export function fairPercentile(groups: readonly (readonly number[])[], part: number): number {
  const filled = groups.filter((group) => group.length > 0);
  const weighed = filled.flatMap((group) => {
    const weight = 1 / (group.length * filled.length);
    return group.map((value) => ({ value, weight }));
  });
  weighed.sort((a, b) => a.value - b.value);
  let below = 0;
  for (const { value, weight } of weighed) {
    below += weight;
    if (below > part) return value;
  }
  return weighed.at(-1)?.value ?? Number.NaN;
}

/** Jain's index of fairness: 1 when all got the same, 1/n when one got everything. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? Number.NaN : (sum * sum) / (shares.length * squares);
}

/** The middle value, or the mean of the middle two. */
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** How far values lie apart: half of the range, in percent of the median. */
export function spread(values: readonly number[]): number {
  const halfRange = (Math.max(...values) - Math.min(...values)) / 2;
  return halfRange === 0 ? 0 : (100 * halfRange) / median(values);
}

/** The half with the smallest amounts, and all others with an amount no larger than theirs. */
export function leastBy<T>(all: readonly T[], amount: (one: T) => number): T[] {
  const most = percentile(all.map(amount), 0.5);
  return all.filter((one) => amount(one) <= most);
}
