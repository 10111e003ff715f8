/** The resource that all waiters want. */
export const RESOURCE = "bench";
/** As long as the longest scenario. Every contender that takes a time limit gets this one. */
export const WAIT_MS = 60_000;

export function sitOut(scenarios: readonly string[], why: string): Record<string, string> {
  return Object.fromEntries(scenarios.map((scenario) => [scenario, why]));
}
