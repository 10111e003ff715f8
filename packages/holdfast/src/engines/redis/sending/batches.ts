import type { EncodedOperation } from "../protocol/encode.js";

// A script keeps everybody else waiting, so one call does no more than a server does in a few
// milliseconds: so many operations that the first part of the script decides, or what takes as long.
const MAX_WEIGHT = 512;
const HEAVY = 8;
/** One that meets others on its resource: they are about shared grants or a line, and take longest. */
const CROWDED = 32;
const HEARTBEAT = 2;
/** So many fit into one call whatever they are. */
const FEW = MAX_WEIGHT / CROWDED;

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

/** The same of operations. */
export function batchesOf<T extends EncodedOperation>(operations: readonly T[]): (readonly T[])[] {
  return inBatches(
    operations,
    ({ key }) => key,
    ({ words }) => words[0]!,
  );
}

function weightOf(name: string, meetsOthers: boolean): number {
  if (name === "heartbeat") return HEARTBEAT;
  if (meetsOthers) return CROWDED;
  return /^[-+?=]/.test(name) ? 1 : HEAVY;
}
