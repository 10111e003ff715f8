import { costBeside, type Excuse } from "./index.js";

/** For engines whose backend reads a whole list to answer one question; so many show that it does. */
export function excusedCost(laws: readonly string[], many: number, why: string): Excuse[] {
  return costBeside(many)
    .filter(({ id }) => laws.includes(id))
    .map(({ id, run }) => ({ law: id, why, witness: (harness) => run(harness) }));
}
