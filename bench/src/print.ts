import { show } from "./numbers.js";
import type { Report, Row, Table, Verdict } from "./report.js";
import type { Paint } from "./terminal.js";

/** The whole report as text: one table a scenario, then what was promised and whether it held. */
export function printReport(report: Report, paint: Paint): string {
  const { machine, commit, changed } = report;
  const { seconds, rounds } = report;
  const how = report.quick
    ? "a quick run, whose numbers mean nothing"
    : `${seconds} s a row, ${rounds === 1 ? "one round" : `medians of ${rounds} rounds`}`;
  const about =
    `${machine.cores} × ${machine.cpu}, ${machine.memoryMiB} MiB, Node ${machine.node}, ` +
    `${machine.platform}, load ${machine.load}`;
  const source = commit ? `commit ${commit.slice(0, 10)}${changed ? ", with changes" : ""}` : "";
  return [
    paint("dim", [about, source, how].filter(Boolean).join("\n")),
    ...report.tables.map((table) => printTable(table, paint)),
    printVerdicts(report.requirements, paint),
  ].join("\n\n");
}

function printTable(table: Table, paint: Paint): string {
  const { columns } = table;
  const rows = table.rows.filter(({ measures }) => measures !== null);
  const [first, ...rest] = columns;
  const reference = rows.find(({ contender }) => contender === table.reference);
  const compares = reference?.measures != null;
  const spreads = rows.some(({ spread }) => spread !== null);
  const titles = [
    ...["", first!.title, ...(spreads ? ["±"] : []), ...(compares ? ["ratio"] : [])],
    ...rest.map(({ title }) => title),
  ];
  const cells = rows.map((row) => [
    row.name,
    cell(row, (measures) => show(measures[first!.key], first!.kind)),
    ...(spreads ? [cell(row, () => show(row.spread ?? undefined, "percent"))] : []),
    ...(compares ? [cell(row, () => (row.ratio === null ? "" : show(row.ratio, "times")))] : []),
    ...rest.map(({ key, kind }) => cell(row, (measures) => show(measures[key], kind))),
  ]);
  const widths = titles.map((title, i) =>
    Math.max(title.length, ...cells.map((line) => line[i]!.length)),
  );
  const line = (texts: readonly string[]) =>
    texts
      .map((text, i) => (i === 0 ? text.padEnd(widths[i]!) : text.padStart(widths[i]!)))
      .join("  ")
      .trimEnd();
  return [
    paint("bold", table.title),
    paint(
      "dim",
      table.about + (compares ? ` Ratio: to ${reference.name}; above 1 is better.` : ""),
    ),
    paint("dim", line(titles)),
    ...cells.map((texts, i) => (rows[i]!.ours ? paint("cyan", line(texts)) : line(texts))),
    ...absences(table.rows).map((note) => paint("dim", note)),
  ].join("\n");
}

/** Who is not in the table, and why; those with the same reason together. */
function absences(rows: readonly Row[]): string[] {
  const reasons = new Set(rows.flatMap(({ why }) => why ?? []));
  return [...reasons].map((reason) => {
    const names = rows.filter(({ why }) => why === reason).map(({ name }) => name);
    return `– ${names.join("; ")}: ${reason}`;
  });
}

function cell(row: Row, text: (measures: NonNullable<Row["measures"]>) => string): string {
  return row.measures === null ? "–" : text(row.measures);
}

function printVerdicts(verdicts: readonly Verdict[], paint: Paint): string {
  if (verdicts.length === 0) return "";
  const lines = verdicts.map(({ title, atLeast, atMost, kind, got, met }) => {
    const wanted =
      atMost === null ? `at least ${show(atLeast!, kind)}` : `at most ${show(atMost, kind)}`;
    if (got === null) return paint("dim", `  –     ${title}: ${wanted}, not measured`);
    const mark = met ? paint("green", "pass") : paint("red", "miss");
    return `  ${mark}  ${title}: ${show(got, kind)}, ${wanted}`;
  });
  return [paint("bold", "Must show"), ...lines].join("\n");
}
