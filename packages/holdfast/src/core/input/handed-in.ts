import type { Engine } from "../../engine.js";
import { kindOf, UsageError } from "../../errors.js";

/** A member that identifies a client of a backend, and the engine that takes this client. */
const CLIENTS: readonly (readonly [member: string, engine: string])[] = [
  ["withCommandOptions", "redisEngine"],
  ["evalsha", "redisEngine"],
  ["getConnection", "mysqlEngine"],
  ["totalCount", "postgresEngine"],
];

/**
 * Refuses what is not an engine; it would otherwise fail deep inside, with an error that helps
 * nobody.
 */
export function checkEngine(
  target: unknown,
  taker: string,
  wants: string,
): asserts target is Engine {
  if (typeof target === "object" && target !== null) {
    const { traits, tryAcquire } = target as Partial<Engine>;
    if (typeof traits === "object" && typeof tryAcquire === "function") return;
  }
  throw new UsageError(`${taker} takes ${wants}, got ${kindOf(target)}${adviceOn(target)}`);
}

function adviceOn(target: unknown): string {
  if (typeof target === "string" || target instanceof URL) return "; connect(url) takes a URL";
  if (typeof target !== "object" || target === null) return "";
  const engine = CLIENTS.find(([member]) => member in target)?.[1];
  if (engine !== undefined) return `; a client goes into its engine: ${engine}({ client })`;
  return "url" in target ? "; hand in the URL itself: connect(url)" : "";
}
