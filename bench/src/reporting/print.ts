import type { Report, Table, Verdict } from "./report.js";
import { aboutReport, tableCells, verdictTexts } from "./table-cells.js";
import type { Paint } from "./terminal.js";

/** The whole report as text: one table a scenario, then what was promised and whether it held. */
export function printReport(report: Report, paint: Paint): string {
  return [
    paint("dim", aboutReport(report).join("\n")),
    ...report.tables.map((table) => printTable(table, paint)),
    printVerdicts(report.requirements, paint),
  ].join("\n\n");
}

function printTable(table: Table, paint: Paint): string {
  const { about, titles, lines, absences } = tableCells(table);
  const widths = titles.map((title, i) =>
    Math.max(title.length, ...lines.map(({ texts }) => texts[i]!.length)),
  );
  const line = (texts: readonly string[]) =>
    texts
      .map((text, i) => (i === 0 ? text.padEnd(widths[i]!) : text.padStart(widths[i]!)))
      .join("  ")
      .trimEnd();
  return [
    paint("bold", table.title),
    paint("dim", about),
    paint("dim", line(titles)),
    ...lines.map(({ ours, texts }) => (ours ? paint("cyan", line(texts)) : line(texts))),
    ...absences.map((absence) => paint("dim", `– ${absence}`)),
  ].join("\n");
}

function printVerdicts(verdicts: readonly Verdict[], paint: Paint): string {
  const lines = verdicts.map((verdict) => {
    const { wanted, got } = verdictTexts(verdict);
    if (got === null) return paint("dim", `  –     ${verdict.title}: ${wanted}, not measured`);
    const mark = verdict.met ? paint("green", "pass") : paint("red", "miss");
    return `  ${mark}  ${verdict.title}: ${got}, ${wanted}`;
  });
  return [paint("bold", "Must show"), ...lines].join("\n");
}
