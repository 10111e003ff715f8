import { hostname } from "node:os";
import { basename } from "node:path";
import { ACQUIRE_DEFAULTS, type AcquireOptions, UsageError } from "holdfast";
import { readArguments } from "../input/arguments.js";
import { parseDuration } from "../input/duration.js";
import { chosenUrl } from "../input/engine-url.js";

const OPTIONS = {
  url: { type: "string" },
  ttl: { type: "string" },
  wait: { type: "string" },
  shared: { type: "boolean" },
  limit: { type: "string" },
  label: { type: "string" },
  "lock-delay": { type: "string" },
  grace: { type: "string" },
  json: { type: "boolean" },
  quiet: { type: "boolean", short: "q" },
  help: { type: "boolean", short: "h" },
} as const;

const MOST_GRACE_MS = 10_000;
const LONGEST_LABEL = 256;

/** The arguments of `holdfast run`. Ttl and grace are present only if they were given. */
export interface RunRequest {
  readonly url: string;
  readonly resource: string;
  readonly acquire: AcquireOptions & { readonly label: string };
  readonly command: string;
  readonly args: readonly string[];
  readonly json: boolean;
  readonly quiet: boolean;
}

/** A request with every option decided. */
export interface TimedRequest extends RunRequest {
  readonly acquire: RunRequest["acquire"] & { readonly ttlMs: number; readonly graceMs: number };
}

export function readRunRequest(args: readonly string[], env: NodeJS.ProcessEnv): RunRequest {
  const end = args.indexOf("--");
  const ours = end < 0 ? args : args.slice(0, end);
  const { texts, flags, positionals } = readArguments(ours, OPTIONS, "run");
  const [resource, ...rest] = positionals;
  const [command, ...commandArgs] = end < 0 ? [] : args.slice(end + 1);
  if (resource === undefined) {
    throw new UsageError("run needs the name of a lock: holdfast run NAME -- command");
  }
  if (end < 0 || rest.length > 0) {
    const line = ["holdfast run", resource, "--", ...(rest.length > 0 ? rest : ["command"])];
    throw new UsageError(`the command goes after --, like: ${line.join(" ")}`);
  }
  if (command === undefined) throw new UsageError("there is no command after --");
  const duration = (name: keyof typeof OPTIONS) => {
    const text = texts.get(name);
    return text === undefined ? undefined : parseDuration(`--${name}`, text);
  };
  const [ttlMs, graceMs] = [duration("ttl"), duration("grace")];
  const limit = readLimit(texts.get("limit"));
  return {
    url: chosenUrl(texts.get("url"), env),
    resource,
    acquire: {
      ...(ttlMs === undefined ? {} : { ttlMs }),
      ...(graceMs === undefined ? {} : { graceMs }),
      waitMs: duration("wait") ?? Infinity,
      lockDelayMs: duration("lock-delay") ?? 0,
      mode: flags.has("shared") || limit !== undefined ? "shared" : "exclusive",
      ...(limit === undefined ? {} : { limit }),
      label: texts.get("label") ?? defaultLabel(command),
    },
    command,
    args: commandArgs,
    json: flags.has("json"),
    quiet: flags.has("quiet"),
  };
}

/** Decides ttl and grace. An engine may not allow the default ttl, so it is capped. */
export function withTimes(request: RunRequest, longestTtlMs: number): TimedRequest {
  const { acquire } = request;
  const ttlMs = acquire.ttlMs ?? Math.min(ACQUIRE_DEFAULTS.ttlMs, longestTtlMs);
  // The command gets a third of the ttl to clean up between SIGTERM and SIGKILL.
  const graceMs = acquire.graceMs ?? Math.min(Math.floor(ttlMs / 3), MOST_GRACE_MS);
  return { ...request, acquire: { ...acquire, ttlMs, graceMs } };
}

function readLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UsageError(`--limit is ${JSON.stringify(text)}; it must be a whole number from 1`);
}

/** Other waiters see this label. It leaves out the command's arguments, which may hold secrets. */
function defaultLabel(command: string): string {
  return `${hostname()}/${process.pid} ${basename(command)}`.slice(0, LONGEST_LABEL);
}
