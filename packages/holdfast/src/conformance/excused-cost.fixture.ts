import { costBeside, type Excuse } from "./index.js";

/**
 * Excuses engines whose backend reads a whole list to answer one question. many: enough to show it.
 */
export function excusedCost(laws: readonly string[], many: number, why: string): Excuse[] {
  return costBeside(many)
    .filter(({ id }) => laws.includes(id))
    .map(({ id, run }) => ({ law: id, why, witness: (harness) => run(harness) }));
}
