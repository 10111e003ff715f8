import { prepare, UsageError } from "holdfast";
import { readArguments } from "./arguments.js";
import { readUrl } from "./engine-url.js";
import { EXIT } from "./exit-codes.js";
import { failureOf, tellFailure } from "./failure.js";

const OPTIONS = {
  url: { type: "string" },
  wait: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** `holdfast init`: gets what follows the verb, gives the exit code. */
export async function init(args: readonly string[]): Promise<number> {
  const { texts, flags, positionals } = readArguments(args, OPTIONS, "init");
  const url = readUrl(onlyUrl(positionals, texts.get("url")), process.env);
  const json = flags.has("json");
  try {
    const outcome = await prepare(url, { wait: flags.has("wait") });
    const said = outcome === "prepared" ? "everything that locks need is there" : outcome;
    process.stdout.write(json ? `${JSON.stringify({ outcome })}\n` : `${said}\n`);
    return EXIT.ok;
  } catch (error) {
    return tellFailure(failureOf(error, url), json);
  }
}

function onlyUrl([first, second]: readonly string[], option: string | undefined) {
  // The URLs themselves may hold passwords.
  if (second !== undefined || (first !== undefined && option !== undefined)) {
    throw new UsageError("init takes one URL, got two: holdfast init URL");
  }
  if (first !== undefined && !/^[\w+-]+:/.test(first)) {
    throw new UsageError(
      `init takes the URL of an engine, got ${JSON.stringify(first)}; it looks like postgres://app@db/app`,
    );
  }
  return first ?? option;
}
