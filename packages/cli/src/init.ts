import { connect, EngineError, prepare, UsageError } from "holdfast";
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

const SQL = /^(postgres|postgresql|mysql):/i;

/** `holdfast init`: gets what follows the verb, gives the exit code. */
export async function init(args: readonly string[]): Promise<number> {
  const { texts, flags, positionals } = readArguments(args, OPTIONS, "init");
  const url = readUrl(onlyUrl(positionals, texts.get("url")), process.env);
  const json = flags.has("json");
  try {
    const wait = flags.has("wait");
    const outcome = await prepare(url, { wait });
    const isSql = outcome === "prepared" && SQL.test(url);
    const usable = isSql ? { usable: await mayUse(url) } : {};
    const said =
      outcome === "nothing to do"
        ? `${schemeOf(url)}: needs nothing to be prepared; nothing was asked of it`
        : !isSql
          ? certified(wait)
          : usable.usable
            ? "everything that locks need is there, and this user may use it"
            : notUsable(url);
    process.stdout.write(json ? `${JSON.stringify({ outcome, ...usable })}\n` : `${said}\n`);
    return EXIT.ok;
  } catch (error) {
    return tellFailure(failureOf(error, url), json);
  }
}

/** Whether the user of this URL may do what locks need. */
async function mayUse(url: string): Promise<boolean> {
  try {
    await using locks = await connect(url);
    await locks.inspect("holdfast init");
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.reason === "rights") return false;
    throw error;
  }
}

/** The statements that are missing; their words are the ones of the engines' pages. */
function notUsable(url: string): string {
  const [, name = ""] = /^\w+:\/\/(\w+)[:@]/.exec(url) ?? [];
  const user = name === "" ? "…" : name;
  const [, database = "…"] = /^\w+:\/\/[^/]*\/(\w+)/.exec(url) ?? [];
  const usual = /[?&]hold=shedlock\b/.test(url) ? "holdfast_shedlock" : "holdfast";
  const [, schema = usual] = /[?&]schema=(\w+)/.exec(url) ?? [];
  const grants = /^mysql:/i.test(url)
    ? `GRANT EXECUTE ON ${database}.* TO ${user}`
    : `GRANT USAGE ON SCHEMA ${schema} TO ${user}; ` +
      `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${user}`;
  return `tables and routines are there, but this user may not use them; their owner sends: ${grants}`;
}

function certified(wait: boolean): string {
  return wait
    ? "all servers count"
    : "new servers count; those that were restarted count after their quarantine (--wait sits it out)";
}

function schemeOf(url: string): string {
  return url.slice(0, url.indexOf(":")).toLowerCase();
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
