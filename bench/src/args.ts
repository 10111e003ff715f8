import { parseArgs } from "node:util";
import { UsageMistake } from "./run-suite.js";

const DEFAULT_SECONDS = 0.8;
// A worker that says nothing for longer than this and a little is taken for dead.
const MAX_SECONDS = 20;

export interface BenchArgs {
  readonly suite: string | null;
  readonly seconds: number;
  readonly scenarios: readonly string[] | null;
  readonly contenders: readonly string[] | null;
  /** Where results go; null for the usual place, and only when everything was measured. */
  readonly out: string | null;
  readonly json: boolean;
  readonly check: boolean;
  readonly help: boolean;
}

export const HELP = `npm run bench -- <suite> [options]

  --seconds N        how long each row is measured (default ${DEFAULT_SECONDS})
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
  const seconds = Number(values.seconds ?? DEFAULT_SECONDS);
  if (!(seconds > 0 && seconds <= MAX_SECONDS)) {
    throw new UsageMistake(`--seconds is "${values.seconds}"; it must be up to ${MAX_SECONDS}`);
  }
  return {
    suite: positionals[0] ?? null,
    seconds,
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
        ...{ seconds: text, only: text, with: text, out: text },
        ...{ json: flag, check: flag, help: flag },
      },
    });
  } catch (error) {
    throw new UsageMistake((error as Error).message);
  }
}

function list(value: string | undefined): readonly string[] | null {
  return value?.split(",").filter(Boolean) ?? null;
}
