/** The one resource that everybody wants. */
export const RESOURCE = "bench";
/** As patient as the longest scenario; whoever can be told so, is. */
export const WAIT_MS = 60_000;

export function sitOut(scenarios: readonly string[], why: string): Record<string, string> {
  return Object.fromEntries(scenarios.map((scenario) => [scenario, why]));
}
