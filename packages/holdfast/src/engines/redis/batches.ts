// A script keeps everybody else waiting, so one call does no more than a server does in a few
// milliseconds: so many operations that the first part of the script decides, or what takes as long.
const MAX_WEIGHT = 512;
const HEAVY = 8;
const HEARTBEAT = 2;
/** So many fit into one call whatever they are. */
const FEW = MAX_WEIGHT / HEAVY;

/** Cuts what goes out together into calls, in its order. */
export function inBatches<T>(
  all: readonly T[],
  keyOf: (one: T) => string,
  nameOf: (one: T) => string,
): (readonly T[])[] {
  if (all.length <= FEW) return [all];
  const batches: T[][] = [];
  const met = new Set<string>();
  let batch: T[] = [];
  let left = MAX_WEIGHT;
  for (const one of all) {
    const weight = weightOf(nameOf(one), met.has(keyOf(one)));
    met.add(keyOf(one));
    if (weight > left) {
      batches.push(batch);
      batch = [];
      left = MAX_WEIGHT;
    }
    batch.push(one);
    left -= weight;
  }
  batches.push(batch);
  return batches;
}

/** Where several meet on one resource, they are about shared grants or a line, and take longer. */
function weightOf(name: string, meetsOthers: boolean): number {
  if (name === "heartbeat") return HEARTBEAT;
  return /^[-+?=]/.test(name) && !meetsOthers ? 1 : HEAVY;
}
