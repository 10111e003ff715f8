// The cost of a list per name, among few names and among many.
import assert from "node:assert/strict";
import type { Locks } from "../locks.js";

const FEW = 1_000;
const MANY = 4_000;
// A quadratic list costs four times as much per name.
const MOST_GROWTH = 2;

export interface ListCostTarget {
  readonly locks: Locks;
  /** Holds name-<first> to name-<last>. */
  fill(first: number, last: number): Promise<void>;
  /** The number of requests to the server, or of records that it read, so far. */
  cost(): number | Promise<number>;
  readonly mostPerName: number;
}

export async function checkListCost(target: ListCostTarget): Promise<void> {
  await target.fill(1, FEW);
  await costOf(target, FEW);
  const few = await costOf(target, FEW);
  await target.fill(FEW + 1, MANY);
  const many = await costOf(target, MANY);
  assert.ok(many <= few * MOST_GROWTH, `${few} a name among ${FEW}, ${many} among ${MANY}`);
  assert.ok(many <= target.mostPerName, `${many} a name`);
}

/** Lists this many names, each once. */
async function costOf({ locks, cost }: ListCostTarget, count: number): Promise<number> {
  const before = await cost();
  const names = new Set<string>();
  let views = 0;
  for await (const { resource } of locks.list()) {
    names.add(resource);
    views++;
  }
  assert.deepEqual([views, names.size], [count, count]);
  return ((await cost()) - before) / count;
}
