import type { Machine } from "./machine.js";
import type { Column, Measures, Requirement, Scenario } from "./suite.js";

export interface Row {
  readonly contender: string;
  readonly name: string;
  readonly ours: boolean;
  /** Null where it cannot take part; `why` says the reason. */
  readonly measures: Measures | null;
  readonly why: string | null;
  /** How many times as good as the reference row: above 1 is better, for rates and for times. */
  readonly ratio: number | null;
}

export interface Table {
  readonly scenario: string;
  readonly title: string;
  readonly about: string;
  readonly better: Scenario["better"];
  readonly columns: readonly Column[];
  readonly reference: string;
  readonly rows: readonly Row[];
}

export interface Verdict {
  readonly title: string;
  readonly atLeast: number;
  /** Null when this run did not measure what it takes. */
  readonly got: number | null;
  readonly met: boolean | null;
}

export interface Report {
  readonly suite: string;
  readonly at: string;
  readonly commit: string | null;
  /** Whether files differed from the commit, so that the numbers may be nobody else's. */
  readonly changed: boolean | null;
  readonly machine: Machine;
  readonly seconds: number;
  readonly tables: readonly Table[];
  readonly requirements: readonly Verdict[];
}

export function headline(table: Pick<Table, "columns">, row: Row): number | null {
  return row.measures?.[table.columns[0]!.key] ?? null;
}

/** How many times as good `a` is as `b`. */
export function improvement(better: Scenario["better"], a: number, b: number): number {
  return better === "more" ? a / b : b / a;
}

export function judge(requirements: readonly Requirement[], tables: readonly Table[]): Verdict[] {
  return requirements.map(({ title, scenario, of, against, atLeast }) => {
    const table = tables.find((candidate) => candidate.scenario === scenario);
    const value = (id: string) => {
      const row = table?.rows.find(({ contender }) => contender === id);
      return table && row ? headline(table, row) : null;
    };
    const own = value(of);
    const others = against.map(value).filter((other) => other !== null);
    if (table === undefined || own === null || others.length === 0) {
      return { title, atLeast, got: null, met: null };
    }
    const got = Math.min(...others.map((other) => improvement(table.better, own, other)));
    return { title, atLeast, got, met: got >= atLeast };
  });
}
