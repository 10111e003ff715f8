import { readFileSync } from "node:fs";
import { UsageError } from "holdfast";
import type { Command } from "./command.js";
import { orMeant } from "./did-you-mean.js";
import { EXIT, exitCodeOf, explain } from "./exit-codes.js";
import { initCommand } from "./init.js";
import { runCommand } from "./run.js";

const COMMANDS: Readonly<Record<string, Command>> = { run: runCommand, init: initCommand };
const GLOBAL_OPTIONS = ["--help", "--version"];

/** Finds the verb, runs it, and turns whatever it throws into a sentence and an exit code. */
export async function main(args: readonly string[]): Promise<number> {
  try {
    return await dispatch(args);
  } catch (error) {
    process.stderr.write(`holdfast: ${explain(error)}\n`);
    return exitCodeOf(error);
  }
}

async function dispatch(args: readonly string[]): Promise<number> {
  const [first = "--help", ...rest] = args;
  if (first === "--version") return print(`holdfast ${version()}`);
  if (first === "--help" || first === "-h") return print(overview());
  if (first === "help") return help(rest);
  const command = find(first);
  const ours = rest.includes("--") ? rest.slice(0, rest.indexOf("--")) : rest;
  if (ours.includes("--help") || ours.includes("-h")) return print(command.help);
  return command.run(rest);
}

function help([verb]: readonly string[]): number {
  return print(verb === undefined ? overview() : find(verb).help);
}

function find(verb: string): Command {
  const command = Object.hasOwn(COMMANDS, verb) ? COMMANDS[verb] : undefined;
  if (command !== undefined) return command;
  const isOption = verb.startsWith("-");
  const known = isOption ? GLOBAL_OPTIONS : [...Object.keys(COMMANDS), "help"];
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
  holdfast init [--url URL]
  holdfast COMMAND --help

Commands
${verbs.join("\n")}

Examples
  holdfast run nightly -- ./backup.sh                one backup at a time on this machine
  holdfast run nightly --wait 0s -- ./backup.sh      or not at all, if one is running
  holdfast run gpu --limit 2 -- python train.py      two at a time

HOLDFAST_URL names the engine (default sqlite:, a file in your state folder).`;
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return EXIT.ok;
}

function version(): string {
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
