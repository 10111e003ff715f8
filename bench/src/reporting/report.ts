import type { Machine } from "../measuring/machine.js";
import type {
  Better,
  Column,
  ColumnKind,
  Measures,
  Requirement,
  Scenario,
} from "../measuring/suite.js";

export interface Row {
  readonly contender: string;
  readonly name: string;
  readonly ours: boolean;
  /** The measures of all rounds. Null where it took no part or failed; `why` is the reason. */
  readonly measures: Measures | null;
  /** Half of the range of the headline, in percent; null with a single round. */
  readonly spread: number | null;
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
  /** One of the two is null. */
  readonly atLeast: number | null;
  readonly atMost: number | null;
  /** How to read the number: a column's own kind, or "times" for a comparison. */
  readonly kind: ColumnKind;
  /** Null when this run did not measure it. */
  readonly got: number | null;
  readonly met: boolean | null;
}

export interface Report {
  readonly suite: string;
  readonly at: string;
  readonly commit: string | null;
  /** Whether files differed from the commit. The numbers may then not be reproducible. */
  readonly changed: boolean | null;
  readonly machine: Machine;
  readonly seconds: number;
  readonly rounds: number;
  /** The most resources that a scenario could use; null in JSON where there was no bound. */
  readonly size: number;
  readonly quick: boolean;
  readonly tables: readonly Table[];
  readonly requirements: readonly Verdict[];
}

export function headline(table: Pick<Table, "columns">, row: Row): number | null {
  return row.measures?.[table.columns[0]!.key] ?? null;
}

/** How many times as good `a` is as `b`. A value of 0 where less is better gives Infinity. */
export function improvement(better: Better, a: number, b: number): number {
  if (a === b) return 1;
  return better === "more" ? a / b : b / a;
}

export function judge(requirements: readonly Requirement[], tables: readonly Table[]): Verdict[] {
  return requirements.map((requirement) => {
    const { title } = requirement;
    const atLeast = "atLeast" in requirement ? requirement.atLeast : null;
    const atMost = "atMost" in requirement ? requirement.atMost : null;
    const { got, kind } = find(requirement, tables);
    if (got === null) return { title, atLeast, atMost, kind, got, met: null };
    const met = (atLeast === null || got >= atLeast) && (atMost === null || got <= atMost);
    return { title, atLeast, atMost, kind, got, met };
  });
}

function find(
  requirement: Requirement,
  tables: readonly Table[],
): { got: number | null; kind: ColumnKind } {
  const kind = "against" in requirement ? "times" : "each";
  const table = tables.find(({ scenario }) => scenario === requirement.scenario);
  const key = requirement.column ?? table?.columns[0]?.key;
  const column = table?.columns.find((candidate) => candidate.key === key);
  if (table === undefined || column === undefined) return { got: null, kind };
  const value = (id: string) =>
    table.rows.find(({ contender }) => contender === id)?.measures?.[column.key] ?? null;
  const own = value(requirement.of);
  if (!("against" in requirement)) return { got: own, kind: column.kind };
  const others = requirement.against.map(value).filter((other) => other !== null);
  if (own === null || others.length === 0) return { got: null, kind };
  const better = column.better ?? table.better;
  return { got: Math.min(...others.map((other) => improvement(better, own, other))), kind };
}
