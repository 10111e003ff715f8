// This file does not import the library, so that --help and --version answer at once.
import { readFileSync } from "node:fs";
import type { Command } from "./command.js";
import { orMeant } from "./input/did-you-mean.js";
import { INIT_HELP } from "./verbs/init-help.js";
import { RUN_HELP } from "./verbs/run-help.js";

const COMMANDS: Readonly<Record<string, Command>> = {
  run: {
    summary: "run a command while holding a lock",
    help: RUN_HELP,
    run: async (args) => (await import("./verbs/run.js")).run(args),
  },
  init: {
    summary: "make the tables that an engine needs, once",
    help: INIT_HELP,
    run: async (args) => (await import("./verbs/init.js")).init(args),
  },
};
const GLOBAL_OPTIONS = ["--help", "--version"];

/** Finds the verb, runs it, and turns its errors into a sentence and an exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    return await dispatch(args);
  } catch (error) {
    const { failureOf, tellFailure } = await import("./output/failure.js");
    return tellFailure(failureOf(error), beforeCommand(args).includes("--json"));
  }
}

async function dispatch(args: readonly string[]): Promise<number> {
  const [first = "--help", ...rest] = args;
  if (first === "--version") return print(`holdfast ${version()}`);
  if (first === "--help" || first === "-h") return print(overview());
  if (first === "help") return help(rest);
  const command = await find(first);
  const ours = beforeCommand(rest);
  if (ours.includes("--help") || ours.includes("-h")) return print(command.help);
  return command.run(rest);
}

function beforeCommand(args: readonly string[]): readonly string[] {
  return args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
}

async function help([verb]: readonly string[]): Promise<number> {
  return print(verb === undefined ? overview() : (await find(verb)).help);
}

async function find(verb: string): Promise<Command> {
  const command = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (command !== undefined) return command;
  const isOption = verb.startsWith("-");
  const known = isOption ? GLOBAL_OPTIONS : [...Object.keys(COMMANDS), "help"];
  const { UsageError } = await import("holdfast");
  throw new UsageError(
    `there is no ${isOption ? "option" : "command"} "${verb}".${orMeant(verb, known)} ` +
      "See holdfast --help",
  );
}

function overview(): string {
  const verbs = Object.entries(COMMANDS).map(
    ([name, { summary }]) => `  ${name.padEnd(6)} ${summary}`,
  );
  return `holdfast: distributed locks on the command line

Usage
  holdfast run NAME [options] -- command args…
  holdfast init [URL]
  holdfast COMMAND --help

Commands
${verbs.join("\n")}

Examples
  holdfast run nightly -- ./backup.sh                one backup at a time on this host
  holdfast run nightly --wait 0s -- ./backup.sh      or not at all, if one is running
  holdfast run gpu --limit 2 -- python train.py      two at a time

HOLDFAST_URL names the engine. Without it the locks are a file of this host (sqlite:, in your state
folder): three hosts have three locks.`;
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function version(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
