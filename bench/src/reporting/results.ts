import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chart } from "./chart.js";
import { markdownReport } from "./markdown.js";
import type { Report } from "./report.js";

/** Writes <suite>.json, a page and one chart a scenario. Returns their paths. */
export function writeResults(report: Report, folder: string): string[] {
  mkdirSync(folder, { recursive: true });
  const files: [string, string][] = [
    [`${report.suite}.json`, `${JSON.stringify(report, rounded, 2)}\n`],
    [`${report.suite}.md`, markdownReport(report)],
    ...report.tables.map((table): [string, string] => [
      `${report.suite}-${table.scenario}.svg`,
      chart(table),
    ]),
  ];
  return files.map(([name, text]) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  });
}

/** Rounds for JSON. More digits than a measurement has would hide the differences between runs. */
export function rounded(_key: string, value: unknown): unknown {
  return typeof value === "number" && Number.isFinite(value) ? Number(value.toPrecision(5)) : value;
}
