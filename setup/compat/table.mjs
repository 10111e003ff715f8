// The table in docs/compatibility.md. Rows of versions that were not run again stay unchanged.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../workspace.mjs";
import { VERSIONS } from "./servers.mjs";

const PAGE = join(root, "docs/compatibility.md");
const MARKED = /(<!-- compatibility[^>]*-->\n)([\s\S]*?)(<!-- \/compatibility -->)/;
const HEAD = [
  "| server | version | laws | tests of its own | run on | |",
  "|---|---|---|---|---|---|",
];

/** The rows of the page, by server name. */
export function rowsOf(page) {
  const [, , table = ""] = MARKED.exec(page) ?? [];
  const rows = table
    .split("\n")
    .slice(HEAD.length)
    .filter((line) => line.startsWith("|"));
  return new Map(rows.map((line) => [line.split("|")[1].trim(), line]));
}

/** Writes a row, in the order of the list of versions. */
export function writeRow(name, row) {
  const page = readFileSync(PAGE, "utf8");
  const rows = rowsOf(page).set(name, row);
  const lines = [...HEAD, ...VERSIONS.flatMap((version) => rows.get(version.name) ?? [])];
  const table = `${lines.join("\n")}\n`;
  writeFileSync(
    PAGE,
    page.replace(MARKED, (_, start, __, end) => `${start}${table}${end}`),
  );
}

export function hasResult(name) {
  return /\d of \d/.test(rowsOf(readFileSync(PAGE, "utf8")).get(name) ?? "");
}

/** laws, own: lists of { name, passed }. */
export function resultRow({ name, known = {} }, exact, laws, own, date) {
  const red = [...laws, ...own].filter(({ passed }) => !passed);
  const note = red
    .map((test) => cell(`"${test.name}": ${known[test.name] ?? "failed, and nobody has said why"}`))
    .join("<br>");
  return `| ${name} | ${exact} | ${score(laws)} | ${score(own)} | ${date} | ${note} |`;
}

export function missingRow(name, reason) {
  const [first] = reason.split("\n");
  return `| ${name} | – | not run here | not run here | – | ${cell(first)} |`;
}

function score(tests) {
  const passed = tests.filter((test) => test.passed).length;
  const text = `${passed} of ${tests.length}`;
  return passed === tests.length ? text : `**${text}**`;
}

function cell(text) {
  return text.replaceAll("|", "\\|");
}
