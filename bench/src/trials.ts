import { ExclusionError } from "./exclusion.js";
import { type Extent, Stage } from "./stage.js";
import { median, spread } from "./statistics.js";
import type { Contender, Measures, Scenario, Suite } from "./suite.js";

/** What one contender showed in one scenario, round after round. */
export class Trials {
  readonly contender: Contender;
  readonly #rounds: Measures[] = [];
  /** Why it takes no part, or no further part. */
  why: string | null;

  constructor(scenario: Scenario, contender: Contender) {
    this.contender = contender;
    this.why = whyNot(scenario, contender);
  }

  async measure(
    suite: Suite,
    scenario: Scenario,
    extent: Extent,
    raw: Measures | null,
  ): Promise<void> {
    if (this.why !== null) return;
    try {
      await using stage = await Stage.open(suite, this.contender, extent);
      this.#rounds.push(await scenario.measure(stage, raw));
    } catch (error) {
      // Ours must not fail. Another's failure is a result, and the others' numbers stay good.
      if (this.contender.ours) throw error;
      const wrong = error instanceof ExclusionError ? "disqualified" : "failed";
      this.why = `${wrong}: ${error instanceof Error ? error.message : error}`;
    }
  }

  /** The median of every column. Null where there is nothing to show: half a row would mislead. */
  measures(): Measures | null {
    return this.why === null ? medians(this.#rounds) : null;
  }

  spread(column: string): number | null {
    const values = this.#rounds.flatMap((measures) => measures[column] ?? []);
    return this.why === null && values.length > 1 ? spread(values) : null;
  }
}

export function medians(rounds: readonly Measures[]): Measures {
  const keys = [...new Set(rounds.flatMap((measures) => Object.keys(measures)))];
  return Object.fromEntries(
    keys.map((key) => [key, median(rounds.flatMap((measures) => measures[key] ?? []))]),
  );
}

function whyNot(scenario: Scenario, contender: Contender): string | null {
  if (scenario.reach === "host" && contender.reach === "process") {
    return "lives in one process; no other process can see it";
  }
  return contender.sitsOut?.[scenario.id] ?? null;
}
