import {
  headline,
  improvement,
  judge,
  type Report,
  type Row,
  type Table,
} from "../reporting/report.js";
import { describeCommit, describeMachine } from "./machine.js";
import type { Extent } from "./measurement.js";
import type { Scenario, Suite } from "./suite.js";
import { medians, Trials } from "./trials.js";
import { takeRounds, takeSlices } from "./turns.js";

export interface RunOptions extends Extent {
  /** How often the contenders take turns; null for as often as the suite says. */
  readonly rounds: number | null;
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
  const rounds = options.rounds ?? suite.rounds ?? 1;
  const roundsOf = (scenario: Scenario) => Math.min(rounds, scenario.rounds ?? rounds);
  // A sliced round has one step to open each contender, and one in which all take turns.
  const turnsOf = (scenario: Scenario) =>
    (contenders.length + ("open" in scenario ? 1 : 0)) * roundsOf(scenario);
  const all = scenarios.reduce((sum, one) => sum + turnsOf(one), 0);
  let done = 0;
  const tables: Table[] = [];
  for (const scenario of scenarios) {
    const trials = contenders.map((contender) => new Trials(scenario, contender));
    const onTurn = (who: string) => options.onProgress(`${scenario.title}: ${who}`, done++, all);
    tables.push(await runScenario(suite, scenario, trials, roundsOf(scenario), options, onTurn));
  }
  const requirements = judge(suite.requirements, tables);
  const { seconds, size, quick } = options;
  const extent = { seconds, rounds, size, quick };
  return { suite: suite.name, at, ...describeCommit(), machine, ...extent, tables, requirements };
}

async function runScenario(
  suite: Suite,
  scenario: Scenario,
  trials: readonly Trials[],
  rounds: number,
  extent: Extent,
  onTurn: (who: string) => void,
): Promise<Table> {
  if ("open" in scenario) await takeSlices(suite, scenario, trials, rounds, extent, onTurn);
  else await takeRounds(suite, scenario, trials, rounds, extent, onTurn);
  const { id, title, about, better } = scenario;
  const [first, ...rest] = scenario.columns;
  const rows = [...rawRows(scenario, trials), ...trials.map((trial) => rowOf(trial, first.key))];
  // A column without any value is left out.
  const known = rest.filter(({ key }) =>
    rows.some(({ measures }) => measures?.[key] !== undefined),
  );
  const reference = suite.references?.[id] ?? suite.reference;
  const table = { scenario: id, title, about, better, columns: [first, ...known], reference, rows };
  return { ...table, rows: rows.map((row) => compared(table, row)) };
}

function rowOf(trial: Trials, column: string): Row {
  const { id, name, ours } = trial.contender;
  const { why } = trial;
  const measures = trial.measures();
  return { contender: id, name, ours, measures, spread: trial.spread(column), why, ratio: null };
}

/** Every contender measured the raw value too. The row shows the medians. */
function rawRows({ raw }: Scenario, trials: readonly Trials[]): Row[] {
  const measured = trials.map((trial) => trial.measures()).filter((one) => one !== null);
  if (raw === undefined || measured.length === 0) return [];
  const nothing = { ours: false, spread: null, why: null, ratio: null };
  const measures = medians(measured.map(raw.of));
  return [{ contender: "raw", name: raw.name, measures, ...nothing }];
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

/** A mistake of the caller. It is shown in one line, without a stack. */
export class UsageMistake extends Error {
  override readonly name = "UsageMistake";
}
