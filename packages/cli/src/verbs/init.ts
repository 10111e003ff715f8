import { connect, EngineError, init as initBackend, UsageError } from "holdfast";
import { EXIT } from "../exit-codes.js";
import { readArguments } from "../input/arguments.js";
import { chosenUrl } from "../input/engine-url.js";
import { failureOf, tellFailure } from "../output/failure.js";

const OPTIONS = {
  url: { type: "string" },
  wait: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

type Outcome = Awaited<ReturnType<typeof initBackend>>;

const SQL = /^(postgres|postgresql|mysql):/i;

/** `holdfast init`: takes the arguments after the verb and returns the exit code. */
export async function init(args: readonly string[]): Promise<number> {
  const { texts, flags, positionals } = readArguments(args, OPTIONS, "init");
  const url = chosenUrl(onlyUrl(positionals, texts.get("url")), process.env);
  const json = flags.has("json");
  try {
    const wait = flags.has("wait");
    const outcome = await initBackend(url, { wait });
    const grants = SQL.test(url) && !(await mayUse(url)) ? missingGrants(url) : null;
    const usable = SQL.test(url) ? { usable: grants === null } : {};
    const missing = grants === null ? {} : { grants };
    const said = grants === null ? done(url, outcome, wait) : notUsable(outcome, grants);
    const told = json ? JSON.stringify({ outcome, ...usable, ...missing }) : said;
    process.stdout.write(`${told}\n`);
    // Without the grants, locks by this URL fail although the tables exist.
    return grants === null ? EXIT.ok : EXIT.refused;
  } catch (error) {
    const failure = failureOf(error, url);
    const isForbidden = failure.reason === "rights" && SQL.test(url);
    const message = isForbidden ? `${failure.message}. ${whoMay(url)}` : failure.message;
    return tellFailure({ ...failure, message }, json);
  }
}

function done(url: string, outcome: Outcome, wait: boolean): string {
  if (SQL.test(url)) {
    return outcome === "prepared"
      ? "tables and routines were made or brought up to date, and this user may use them"
      : "everything that locks need was there already, and this user may use it";
  }
  if (outcome === "prepared") return certified(wait);
  return `${schemeOf(url)}: needs nothing to be prepared; nothing was asked of it`;
}

function notUsable(outcome: Outcome, grants: string): string {
  const there = outcome === "prepared" ? "were made or brought up to date" : "were there already";
  return `tables and routines ${there}, but this user may not use them; their owner sends: ${grants}`;
}

/** A user without rights may not even see whether tables and routines are there. */
function whoMay(url: string): string {
  return (
    "If they are not there yet, init is for a user that may create tables and routines. " +
    `For this user to use them, their owner sends: ${missingGrants(url)}`
  );
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

/** The missing GRANT statements, worded as on the engines' documentation pages. */
function missingGrants(url: string): string {
  const [, name = ""] = /^\w+:\/\/(\w+)[:@]/.exec(url) ?? [];
  const user = name === "" ? "…" : name;
  const [, database = "…"] = /^\w+:\/\/[^/]*\/(\w+)/.exec(url) ?? [];
  const usual = /[?&]hold=shedlock\b/.test(url) ? "holdfast_shedlock" : "holdfast";
  const [, schema = usual] = /[?&]schema=(\w+)/.exec(url) ?? [];
  return /^mysql:/i.test(url)
    ? `GRANT EXECUTE ON ${database}.* TO ${user}`
    : `GRANT USAGE ON SCHEMA ${schema} TO ${user}; ` +
        `GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${schema} TO ${user}`;
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
