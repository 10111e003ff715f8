/** The value below which this part of all values lies; NaN if there are none. */
export function percentile(values: readonly number[], part: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!;
}

/** Jain's index of fairness: 1 when all got the same, 1/n when one got everything. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  const squares = shares.reduce((a, b) => a + b * b, 0);
  return squares === 0 ? Number.NaN : (sum * sum) / (shares.length * squares);
}

/** The middle one, or what lies between the middle two. */
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
