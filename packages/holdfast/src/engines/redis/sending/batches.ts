import type { EncodedOperation } from "../protocol/encode.js";

// The server answers nobody else while a script runs, so one call must not take more than a few ms.
// The weight of an operation that the fast path decides is 1.
const MAX_WEIGHT = 512;
const HEAVY = 8;
/** Several operations on one resource are about shared grants or a queue, and take longest. */
const SHARED_RESOURCE = 32;
const HEARTBEAT = 2;
/** This many operations fit into one call, whatever they are. */
const FEW = MAX_WEIGHT / SHARED_RESOURCE;

/** Divides what is sent together into calls, in order. */
export function inBatches<T>(
  all: readonly T[],
  keyOf: (one: T) => string,
  nameOf: (one: T) => string,
): (readonly T[])[] {
  if (all.length <= FEW) return [all];
  const batches: T[][] = [];
  const seenKeys = new Set<string>();
  let batch: T[] = [];
  let left = MAX_WEIGHT;
  for (const one of all) {
    const weight = weightOf(nameOf(one), seenKeys.has(keyOf(one)));
    seenKeys.add(keyOf(one));
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

export function batchesOf<T extends EncodedOperation>(operations: readonly T[]): (readonly T[])[] {
  return inBatches(
    operations,
    ({ key }) => key,
    ({ words }) => words[0]!,
  );
}

function weightOf(name: string, isSharedResource: boolean): number {
  if (name === "heartbeat") return HEARTBEAT;
  if (isSharedResource) return SHARED_RESOURCE;
  return /^[-+?=]/.test(name) ? 1 : HEAVY;
}
