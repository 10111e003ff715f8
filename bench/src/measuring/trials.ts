import { ExclusionError } from "./exclusion.js";
import { median, spread } from "./statistics.js";
import type { Contender, Measures, Scenario } from "./suite.js";

/** What one contender showed in one scenario. */
export class Trials {
  readonly contender: Contender;
  #rounds: readonly Measures[] = [];
  #all: Measures = {};
  /** Why it takes no part, or no further part. */
  why: string | null;

  constructor(scenario: Scenario, contender: Contender) {
    this.contender = contender;
    this.why = whyNot(scenario, contender);
  }

  /** Null where it fails, and then it takes no further part. */
  async attempt<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.why !== null) return null;
    try {
      return await work();
    } catch (error) {
      // Ours must not fail. Another's failure is a result, and the others' numbers stay good.
      if (this.contender.ours) throw error;
      const wrong = error instanceof ExclusionError ? "disqualified" : "failed";
      this.why = `${wrong}: ${error instanceof Error ? error.message : error}`;
      return null;
    }
  }

  /** What each round showed, and all of them together. */
  conclude(rounds: readonly Measures[], all: Measures): void {
    this.#rounds = rounds;
    this.#all = all;
  }

  /** Null where there is nothing to show: half a row would mislead. */
  measures(): Measures | null {
    return this.why === null ? this.#all : null;
  }

  spread(column: string): number | null {
    const values = this.#rounds.flatMap((measures) => measures[column] ?? []);
    return this.why === null && values.length > 1 ? spread(values) : null;
  }
}

/** Of every column. */
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
