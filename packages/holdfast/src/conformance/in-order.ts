import type { Law } from "./harness.js";

/** The laws of a group by number: L18.9 comes before L18.10. */
export function inOrder(laws: readonly Law[]): readonly Law[] {
  return [...laws].sort((one, other) => numberOf(one) - numberOf(other));
}

function numberOf({ id }: Law): number {
  return Number(id.slice(id.indexOf(".") + 1));
}
