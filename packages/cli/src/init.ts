import { prepare, UsageError } from "holdfast";
import { readArguments } from "./arguments.js";
import type { Command } from "./command.js";
import { readUrl } from "./engine-url.js";
import { EXIT, exitCodeOf, explain } from "./exit-codes.js";
import { withoutSecrets } from "./secrets.js";

const OPTIONS = {
  url: { type: "string" },
  wait: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const HELP = `holdfast init: make what an engine needs before its first use

Usage
  holdfast init [--url URL] [--wait] [--json]

Options
  --url URL          the engine  [HOLDFAST_URL, else sqlite:]
  --wait             on redlock: until no server is in quarantine any more
  --json             the outcome on stdout as one JSON object
  -h, --help

On PostgreSQL and MySQL it creates tables and routines, or brings older ones up to date; it needs a
user that may do so, the locks themselves do not. On redlock: it certifies new servers, which would
else wait for a while before they count; with --wait it also sits out the quarantine of servers that were
restarted, which short-lived clients alone never do. Other engines need nothing. Doing it again is harmless.

Exit codes
  64 usage   69 refused or unreachable   78 no such engine, or its client is not installed

Examples
  HOLDFAST_URL=postgres://admin:secret@db/app holdfast init
  holdfast init --url 'mysql://root@127.0.0.1/app?hold=shedlock'
  holdfast init --url redlock://10.0.0.1,10.0.0.2,10.0.0.3`;

export const initCommand: Command = {
  summary: "make the tables that an engine needs, once",
  help: HELP,
  run: async (args) => {
    const { texts, flags, positionals } = readArguments(args, OPTIONS, "init");
    if (positionals.length > 0) {
      throw new UsageError(`init takes no ${JSON.stringify(positionals[0])}; the engine is --url`);
    }
    const url = readUrl(texts.get("url"), process.env);
    try {
      const outcome = await prepare(url, { wait: flags.has("wait") });
      const said = outcome === "prepared" ? "everything that locks need is there" : outcome;
      process.stdout.write(flags.has("json") ? `${JSON.stringify({ outcome })}\n` : `${said}\n`);
      return EXIT.ok;
    } catch (error) {
      process.stderr.write(`holdfast: ${withoutSecrets(explain(error), url)}\n`);
      return exitCodeOf(error);
    }
  },
};
