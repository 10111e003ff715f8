import { parseArgs } from "node:util";
import { UsageMistake } from "./measuring/run-suite.js";

const DEFAULT_SECONDS = 0.8;
const QUICK = { seconds: 0.15, rounds: 1, size: 300 } as const;
// A worker that is silent for longer than this plus the warm-up counts as dead.
const MAX_SECONDS = 20;

export interface BenchArgs {
  readonly suite: string | null;
  readonly seconds: number;
  /** Null for the number that the suite gives. */
  readonly rounds: number | null;
  readonly size: number;
  readonly quick: boolean;
  readonly scenarios: readonly string[] | null;
  readonly contenders: readonly string[] | null;
  /** Where results go; null for the usual place, and only when everything was measured. */
  readonly out: string | null;
  readonly json: boolean;
  readonly check: boolean;
  readonly help: boolean;
}

export const HELP = `npm run bench -- <suite> [options]

  --seconds N        how long a row is measured at a time (default ${DEFAULT_SECONDS}); slices where nobody
                     waits last a tenth of it
  --rounds N         how often the contenders take turns, in slices or as a whole
  --size N           at most so many resources or leases, where a scenario takes many
  --quick            only to see that everything works; the numbers mean nothing
  --only SCENARIO    this scenario only; several with commas
  --with CONTENDER   these contenders only; several with commas
  --out FOLDER       write JSON and charts there, also for a part of the suite
  --json             print the report as JSON instead of tables
  --check            exit with 1 if a number that must be shown is missed`;

export function parseBenchArgs(args: readonly string[]): BenchArgs {
  const { values, positionals } = parse(args);
  if (positionals.length > 1) {
    throw new UsageMistake(`one suite at a time, got ${positionals.join(" and ")}`);
  }
  const quick = values.quick ?? false;
  const seconds = Number(values.seconds ?? (quick ? QUICK.seconds : DEFAULT_SECONDS));
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    throw new UsageMistake(`--seconds is "${values.seconds}"; it must be up to ${MAX_SECONDS}`);
  }
  return {
    suite: positionals[0] ?? null,
    seconds,
    rounds: count("rounds", values.rounds) ?? (quick ? QUICK.rounds : null),
    size: count("size", values.size) ?? (quick ? QUICK.size : Infinity),
    quick,
    scenarios: list(values.only),
    contenders: list(values.with),
    out: values.out ?? null,
    json: values.json ?? false,
    check: values.check ?? false,
    help: values.help ?? false,
  };
}

function parse(args: readonly string[]) {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...{ seconds: text, rounds: text, size: text, only: text, with: text, out: text },
        ...{ quick: flag, json: flag, check: flag, help: flag },
      },
    });
  } catch (error) {
    throw new UsageMistake((error as Error).message);
  }
}

function count(name: string, value: string | undefined): number | null {
  if (value === undefined) return null;
  const number = Number(value);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new UsageMistake(`--${name} is "${value}"; it must be a whole number above 0`);
}

function list(value: string | undefined): readonly string[] | null {
  return value?.split(",").filter(Boolean) ?? null;
}
