import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fairPercentile, jain, median, percentile, spread } from "../measuring/statistics.js";
import { judge, type Report, type Table } from "../reporting/report.js";
import { suite } from "../suites/local/index.js";

const MAIN = fileURLToPath(new URL("../main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-test-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const bench = (...args: string[]) => promisify(execFile)(process.execPath, [MAIN, ...args]);

test("the local suite measures our engines and writes a report and charts", async () => {
  const out = ["--out", folder, "--json"];
  const { stdout } = await bench("local", "--quick", "--with", "memory,sqlite", ...out);
  const report = JSON.parse(stdout) as Report;
  assert.deepEqual(JSON.parse(readFileSync(join(folder, "local.json"), "utf8")), report);
  assert.equal(report.suite, "local");
  assert.ok(report.machine.cores > 0 && report.machine.memoryMiB > 0 && report.machine.cpu);
  assert.equal(report.machine.node, process.versions.node);
  const scenarios = suite.scenarios.map(({ id }) => id);
  assert.deepEqual(
    report.tables.map((table) => table.scenario),
    scenarios,
  );
  for (const table of report.tables) checkTable(table);
  const charts = scenarios.map((id) => `local-${id}.svg`);
  assert.deepEqual(readdirSync(folder).sort(), [...charts, "local.json", "local.md"].sort());
  const chart = readFileSync(join(folder, charts[0]!), "utf8");
  const page = readFileSync(join(folder, "local.md"), "utf8");
  for (const name of charts) assert.ok(page.includes(`](${name})`), `the page shows ${name}`);
  assert.match(page, /^\| \*\*holdfast sqlite\*\* \| \d/m);
  assert.match(chart, /^<svg .*<rect class="ours".*<\/svg>\n$/s);
});

function checkTable({ scenario, columns, rows }: Table): void {
  const contenders = rows.map((row) => row.contender).filter((id) => id !== "raw");
  assert.deepEqual(contenders, ["memory", "sqlite"]);
  const [memory, sqlite] = rows.filter((row) => row.contender !== "raw");
  const { reach } = suite.scenarios.find(({ id }) => id === scenario)!;
  if (reach === "host") {
    assert.equal(memory!.measures, null, `${scenario} needs several processes`);
    assert.ok(memory!.why, "who cannot take part says why");
  } else {
    assert.ok(memory!.measures![columns[0]!.key]! > 0);
  }
  // The other columns may be zero: an idle waiter that costs nothing is what we are after.
  for (const { key } of columns) assert.ok(sqlite!.measures![key]! >= 0, `${scenario} ${key}`);
  assert.ok(sqlite!.measures![columns[0]!.key]! > 0, `${scenario} measured something`);
}

test("an unknown suite, scenario or option is refused with the exit code of a usage error", async () => {
  for (const args of [["nowhere"], ["local", "--only", "nothing"], ["local", "--fast"]]) {
    await assert.rejects(bench(...args), { code: 64 }, args.join(" "));
  }
});

test("a requirement compares with the best of the others, whichever way is better", () => {
  const requirement = { title: "t", scenario: "s", of: "us", against: ["a", "b"], atLeast: 5 };
  const row = (contender: string, value: number) => {
    return {
      contender,
      name: contender,
      ours: false,
      measures: { value },
      spread: null,
      why: null,
      ratio: null,
    };
  };
  const table = (better: "more" | "less", us: number, a: number, b: number): Table => {
    const columns = [{ key: "value", title: "value", kind: "rate" as const }];
    const rows = [row("us", us), row("a", a), row("b", b)];
    return { scenario: "s", title: "s", about: "", better, columns, reference: "a", rows };
  };
  const [rate] = judge([requirement], [table("more", 100, 10, 25)]);
  assert.deepEqual([rate?.got, rate?.met], [4, false]);
  const [time] = judge([requirement], [table("less", 2, 10, 25)]);
  assert.deepEqual([time?.got, time?.met], [5, true]);
  assert.equal(judge([requirement], [])[0]?.met, null, "what was not measured is no pass");
  const bounds = { title: "t", scenario: "s", of: "us" };
  const judged = judge([{ ...bounds, atMost: 99 }], [table("more", 100, 10, 25)]);
  assert.deepEqual([judged[0]?.got, judged[0]?.met, judged[0]?.kind], [100, false, "rate"]);
});

test("medians and spreads agree with values worked out by hand", () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 2, 9]), 3);
  assert.equal(spread([8, 10, 12]), 20);
  assert.equal(spread([0, 0]), 0);
});

test("percentiles and Jain's index agree with values worked out by hand", () => {
  assert.equal(percentile([5, 1, 3], 0.5), 3);
  assert.equal(percentile([1, 2, 3, 4], 0.99), 4);
  assert.ok(Number.isNaN(percentile([], 0.5)));
  assert.equal(fairPercentile([[1, 1, 1, 2], [9]], 0.49), 2);
  assert.equal(fairPercentile([[1, 1, 1, 2], [9], []], 0.51), 9, "one of two waits long");
  assert.ok(Number.isNaN(fairPercentile([[]], 0.5)));
  assert.equal(jain([2, 2, 2, 2]), 1);
  assert.equal(jain([4, 0, 0, 0]), 0.25);
});
