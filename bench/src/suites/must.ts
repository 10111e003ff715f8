import type { Contender, Requirement, Scenario } from "../measuring/suite.js";

type Bound =
  | { readonly against: readonly string[]; readonly atLeast: number }
  | { readonly atLeast: number }
  | { readonly atMost: number };

/** What one contender has to show in one scenario. */
export function must(
  { id: scenario, title: what }: Scenario,
  { id: of, name }: Contender,
  about: string,
  bound: Bound & { readonly column?: string },
): Requirement {
  return { title: `${what}: ${name}, ${about}`, scenario, of, ...bound };
}
