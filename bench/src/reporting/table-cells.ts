import { formatNumber } from "./numbers.js";
import type { Report, Row, Table, Verdict } from "./report.js";

/** A table as texts, for any output format. */
export interface TableCells {
  readonly about: string;
  readonly titles: readonly string[];
  readonly lines: readonly { readonly ours: boolean; readonly texts: readonly string[] }[];
  /** The contenders that are not in the table, and why. */
  readonly absences: readonly string[];
}

export function tableCells(table: Table): TableCells {
  const rows = table.rows.filter(({ measures }) => measures !== null);
  const [first, ...rest] = table.columns;
  const reference = rows.find(({ contender }) => contender === table.reference);
  const spreads = rows.some(({ spread }) => spread !== null);
  const optional = <T>(there: boolean, value: T) => (there ? [value] : []);
  const compares = reference !== undefined;
  return {
    about: table.about + (compares ? ` Ratio: to ${reference.name}; above 1 is better.` : ""),
    titles: [
      ...["", first!.title, ...optional(spreads, "±"), ...optional(compares, "ratio")],
      ...rest.map(({ title }) => title),
    ],
    lines: rows.map(({ name, ours, measures, spread, ratio }) => ({
      ours,
      texts: [
        ...[name, formatNumber(measures![first!.key], first!.kind)],
        ...optional(spreads, formatNumber(spread ?? undefined, "percent")),
        ...optional(compares, formatNumber(ratio ?? undefined, "times")),
        ...rest.map(({ key, kind }) => formatNumber(measures![key], kind)),
      ],
    })),
    absences: absences(table.rows),
  };
}

/** Groups the absent contenders by their reason. */
function absences(rows: readonly Row[]): string[] {
  const reasons = new Set(rows.flatMap(({ why }) => why ?? []));
  return [...reasons].map((reason) => {
    const names = rows.filter(({ why }) => why === reason).map(({ name }) => name);
    return `${names.join("; ")}: ${reason}`;
  });
}

/** The machine, the commit and the settings of the run, one line each. */
export function aboutReport({ machine, commit, changed, ...report }: Report): string[] {
  const { seconds, rounds, quick } = report;
  const where =
    `${machine.cores} × ${machine.cpu}, ${machine.memoryMiB} MiB, Node ${machine.node}, ` +
    `${machine.platform}, load ${machine.load}`;
  const source = commit ? [`commit ${commit.slice(0, 10)}${changed ? ", with changes" : ""}`] : [];
  const turns = rounds === 1 ? "one round" : `up to ${rounds} rounds`;
  const how = quick
    ? "a quick run, whose numbers mean nothing"
    : `${seconds} s at a time, ${turns}`;
  return [where, ...source, how];
}

export function verdictTexts({ atLeast, atMost, kind, got }: Verdict): {
  wanted: string;
  got: string | null;
} {
  const wanted =
    atMost === null
      ? `at least ${formatNumber(atLeast!, kind)}`
      : `at most ${formatNumber(atMost, kind)}`;
  return { wanted, got: got === null ? null : formatNumber(got, kind) };
}
