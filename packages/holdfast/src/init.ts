import { engineFor, readUrl } from "./connect.js";
import { type Known, refuseUnknown } from "./core/input/known-options.js";
import { EngineError, HoldfastError, kindOf, show, UsageError } from "./errors.js";
import type { EngineUrl } from "./url.js";

/** False where everything was there already. */
type PrepareUrl = (url: EngineUrl, wait: boolean) => Promise<boolean>;

export interface PrepareOptions {
  /** On a quorum: until no node is in quarantine any more. */
  readonly wait?: boolean;
}

const PREPARE: Known<PrepareOptions> = { wait: true };
const ENGINES: Record<string, () => Promise<PrepareUrl>> = {
  mysql: async () => (await import("./engines/mysql/index.js")).prepareMysql,
  postgres: async () => (await import("./engines/postgres/index.js")).preparePostgres,
  postgresql: async () => (await import("./engines/postgres/index.js")).preparePostgres,
  redlock: async () => {
    const { initFromUrl } = await import("./engines/quorum/index.js");
    return (url, wait) => initFromUrl(url, wait).then(() => true);
  },
};

/**
 * Makes what an engine needs once before its first use, such as tables, as a user that may make them.
 * What is there already stays; what is of an older version is brought up to date. Says whether there was
 * anything to do.
 */
export async function prepare(
  target: string | URL,
  options: PrepareOptions = {},
): Promise<"prepared" | "nothing to do"> {
  refuseUnknown(options, PREPARE, "prepare");
  const { wait = false } = options;
  if (typeof wait !== "boolean") {
    throw new UsageError(`wait is ${show(wait)}; it must be true or false`);
  }
  const text = target instanceof URL ? target.href : target;
  if (typeof text !== "string") throw new UsageError(`prepare takes a URL, got ${kindOf(text)}`);
  const url = readUrl(text);
  // Refuses what no engine is known for.
  engineFor(url, text);
  const load = Object.hasOwn(ENGINES, url.scheme) ? ENGINES[url.scheme] : undefined;
  if (load === undefined) return "nothing to do";
  const work = await load();
  try {
    return (await work(url, wait)) ? "prepared" : "nothing to do";
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    const message = `${url.scheme}: ${error instanceof Error ? error.message : String(error)}`;
    throw new EngineError(message, { effect: "unknown", retryable: false, cause: error });
  }
}
