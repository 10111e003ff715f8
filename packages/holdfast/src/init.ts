import { engineFor, readUrl } from "./connect.js";
import { type Known, refuseUnknown } from "./core/input/known-options.js";
import { EngineError, HoldfastError, kindOf, show, UsageError } from "./errors.js";
import type { EngineUrl } from "./url.js";

/** Returns false if everything existed already. */
type InitUrl = (url: EngineUrl, wait: boolean) => Promise<boolean>;

export interface InitOptions {
  /** On a quorum: wait until no node is in quarantine any more. */
  readonly wait?: boolean;
}

const OPTIONS: Known<InitOptions> = { wait: true };
const ENGINES: Record<string, () => Promise<InitUrl>> = {
  mysql: async () => (await import("./engines/mysql/index.js")).initMysql,
  postgres: async () => (await import("./engines/postgres/index.js")).initPostgres,
  postgresql: async () => (await import("./engines/postgres/index.js")).initPostgres,
  redlock: async () => {
    const { initFromUrl } = await import("./engines/quorum/index.js");
    return (url, wait) => initFromUrl(url, wait).then(() => true);
  },
};

/**
 * Creates what an engine needs before its first use, such as tables, as a user that may create
 * them. What exists stays; what is of an older version is updated. Returns whether there was
 * anything to do.
 */
export async function init(
  target: string | URL,
  options: InitOptions = {},
): Promise<"prepared" | "nothing to do"> {
  refuseUnknown(options, OPTIONS, "init");
  const { wait = false } = options;
  if (typeof wait !== "boolean") {
    throw new UsageError(`wait is ${show(wait)}; it must be true or false`);
  }
  const text = target instanceof URL ? target.href : target;
  if (typeof text !== "string") throw new UsageError(`init takes a URL, got ${kindOf(text)}`);
  const url = readUrl(text);
  // Throws for a URL that no engine knows.
  engineFor(url, text);
  const load = Object.hasOwn(ENGINES, url.scheme) ? ENGINES[url.scheme] : undefined;
  if (load === undefined) return "nothing to do";
  const initUrl = await load();
  try {
    return (await initUrl(url, wait)) ? "prepared" : "nothing to do";
  } catch (error) {
    if (error instanceof HoldfastError) throw error;
    const message = `${url.scheme}: ${error instanceof Error ? error.message : String(error)}`;
    throw new EngineError(message, { effect: "unknown", retryable: false, cause: error });
  }
}
