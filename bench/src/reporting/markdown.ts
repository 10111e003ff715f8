import type { Report, Table, Verdict } from "./report.js";
import { aboutReport, tableCells, verdictTexts } from "./table-cells.js";

/** The whole report as a page, with the charts that lie beside it. */
export function markdownReport(report: Report): string {
  const sections = report.tables.map((table) => section(report.suite, table));
  return `${[
    `# Benchmark: ${report.suite}`,
    `Written by \`npm run bench -- ${report.suite}\` at ${report.at}. Only ratios carry over to another machine.`,
    aboutReport(report).join("  \n"),
    ...sections,
    ...(report.requirements.length > 0 ? ["## Must show", verdicts(report.requirements)] : []),
  ].join("\n\n")}\n`;
}

function section(suite: string, table: Table): string {
  const { about, titles, lines, absences } = tableCells(table);
  const rows = lines.map(({ ours, texts: [name, ...rest] }) => [
    ours ? `**${name}**` : name!,
    ...rest,
  ]);
  const align = ["---", ...titles.slice(1).map(() => "---:")];
  return [
    `## ${table.title}`,
    about,
    `![${table.title}](${suite}-${table.scenario}.svg)`,
    [titles, align, ...rows].map(row).join("\n"),
    ...(absences.length > 0 ? [absences.map((absence) => `- ${absence}`).join("\n")] : []),
  ].join("\n\n");
}

function verdicts(all: readonly Verdict[]): string {
  const lines = all.map((verdict) => {
    const { wanted, got } = verdictTexts(verdict);
    return [verdict.title, wanted, got ?? "not measured", verdict.met ? "✓" : "✗"];
  });
  return [["", "wanted", "got", ""], ["---", "---", "---:", "---"], ...lines].map(row).join("\n");
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}
