import { readFileSync } from "node:fs";

const PAGE = new URL("../../../../../../../docs/engines/redis.md", import.meta.url);
const text = readFileSync(PAGE, "utf8");

/**
 * The rights that a user needs, read from the documentation itself: the words after "ACL SETUSER".
 */
export const RULES = words(/```\n(ACL SETUSER [\s\S]*?)```/)
  .slice(3)
  .filter((word) => word !== "on" && !word.startsWith(">"));

/** Further rights, from the rows of the table. */
export const CLUSTER_RULES = words(/\| on a Cluster \| `([^`]*)`/);
export const REPLICAS_RULES = words(/\| for `replicas` \| `([^`]*)`/);

function words(pattern: RegExp): string[] {
  const found = pattern.exec(text)?.[1] ?? "";
  return found.replaceAll("\\\n", " ").replaceAll("\\|", "|").trim().split(/\s+/);
}
