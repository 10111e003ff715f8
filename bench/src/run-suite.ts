import { describeCommit, describeMachine } from "./machine.js";
import { headline, improvement, judge, type Report, type Row, type Table } from "./report.js";
import { Stage } from "./stage.js";
import type { Contender, Measures, Scenario, Suite } from "./suite.js";

export interface RunOptions {
  /** How long each row of each table is measured. */
  readonly seconds: number;
  /** Ids of scenarios and contenders; null for all. */
  readonly scenarios: readonly string[] | null;
  readonly contenders: readonly string[] | null;
  readonly onProgress: (what: string, done: number, all: number) => void;
}

export async function runSuite(suite: Suite, options: RunOptions): Promise<Report> {
  const machine = describeMachine();
  const at = new Date().toISOString();
  const scenarios = choose(suite.scenarios, options.scenarios, "scenario");
  const contenders = choose(suite.contenders, options.contenders, "contender");
  const all = scenarios.length * contenders.length;
  const tables: Table[] = [];
  for (const scenario of scenarios) {
    const onRow = (contender: Contender, index: number) =>
      options.onProgress(
        `${scenario.title}: ${contender.name}`,
        tables.length * contenders.length + index,
        all,
      );
    tables.push(await runScenario(suite, scenario, contenders, options.seconds, onRow));
  }
  const requirements = judge(suite.requirements, tables);
  const { seconds } = options;
  return { suite: suite.name, at, ...describeCommit(), machine, seconds, tables, requirements };
}

async function runScenario(
  suite: Suite,
  scenario: Scenario,
  contenders: readonly Contender[],
  seconds: number,
  onRow: (contender: Contender, index: number) => void,
): Promise<Table> {
  const rows: Row[] = [];
  const raw = scenario.raw === undefined ? null : await measureRaw(suite, scenario.raw, seconds);
  if (raw !== null) rows.push(raw);
  for (const [index, contender] of contenders.entries()) {
    onRow(contender, index);
    const why = whyNot(scenario, contender);
    const measures =
      why === null ? await measureRow(suite, scenario, contender, seconds, raw?.measures) : null;
    const { id, name, ours } = contender;
    rows.push({ contender: id, name, ours, measures, why, ratio: null });
  }
  const { id, title, about, better, columns } = scenario;
  const table = { scenario: id, title, about, better, columns, reference: suite.reference, rows };
  return { ...table, rows: rows.map((row) => compared(table, row)) };
}

async function measureRow(
  suite: Suite,
  scenario: Scenario,
  contender: Contender,
  seconds: number,
  raw: Measures | null | undefined,
): Promise<Measures> {
  await using stage = new Stage(suite, contender, seconds);
  return await scenario.measure(stage, raw ?? null);
}

async function measureRaw(
  suite: Suite,
  raw: NonNullable<Scenario["raw"]>,
  seconds: number,
): Promise<Row> {
  await using stage = new Stage(suite, null, seconds);
  const measures = await raw.measure(stage);
  return { contender: "raw", name: raw.name, ours: false, measures, why: null, ratio: null };
}

function whyNot(scenario: Scenario, contender: Contender): string | null {
  if (scenario.reach === "host" && contender.reach === "process") {
    return "lives in one process; no other process can see it";
  }
  return contender.sitsOut?.[scenario.id] ?? null;
}

function compared(table: Table, row: Row): Row {
  const reference = table.rows.find(({ contender }) => contender === table.reference);
  const own = headline(table, row);
  const other = reference && headline(table, reference);
  if (own === null || other === null || other === undefined || row.contender === "raw") return row;
  return { ...row, ratio: improvement(table.better, own, other) };
}

function choose<T extends { readonly id: string }>(
  all: readonly T[],
  wanted: readonly string[] | null,
  what: string,
): readonly T[] {
  if (wanted === null) return all;
  return wanted.map((id) => {
    const found = all.find((candidate) => candidate.id === id);
    if (found !== undefined) return found;
    const known = all.map((candidate) => candidate.id).join(", ");
    throw new UsageMistake(`no ${what} "${id}"; there are ${known}`);
  });
}

/** The caller's mistake: told in one line, without a stack. */
export class UsageMistake extends Error {
  override readonly name = "UsageMistake";
}
