import { ExclusionError } from "./exclusion.js";
import { median, spread } from "./statistics.js";
import type { Contender, Measures, Scenario } from "./suite.js";

/** The results of one contender in one scenario. */
export class Trials {
  readonly contender: Contender;
  #rounds: readonly Measures[] = [];
  #all: Measures = {};
  /** Why it does not take part, or no longer; null while it does. */
  why: string | null;

  constructor(scenario: Scenario, contender: Contender) {
    this.contender = contender;
    this.why = whyNot(scenario, contender);
  }

  /** Runs some work. Returns null where it fails; the contender then takes no further part. */
  async attempt<T>(work: () => Promise<T>): Promise<T | null> {
    if (this.why !== null) return null;
    try {
      return await work();
    } catch (error) {
      // Our engines must not fail. A peer's failure is a result, and the other numbers stay valid.
      if (this.contender.ours) throw error;
      const wrong = error instanceof ExclusionError ? "disqualified" : "failed";
      this.why = `${wrong}: ${error instanceof Error ? error.message : error}`;
      return null;
    }
  }

  /** Stores the results of each round, and of all rounds together. */
  conclude(rounds: readonly Measures[], all: Measures): void {
    this.#rounds = rounds;
    this.#all = all;
  }

  /** Null where the contender dropped out: half a row would mislead. */
  measures(): Measures | null {
    return this.why === null ? this.#all : null;
  }

  spread(column: string): number | null {
    const values = this.#rounds.flatMap((measures) => measures[column] ?? []);
    return this.why === null && values.length > 1 ? spread(values) : null;
  }
}

/** The median of every column. */
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
