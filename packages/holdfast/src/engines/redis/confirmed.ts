import type { Confirmed } from "./client.js";

/**
 * WAIT tells how many replicas have what this connection wrote, and a client may reconnect at any
 * moment: on a new connection, which wrote nothing, all have everything. So the four commands go out
 * together, and count only if the first and the last met the same connection. Its number alone does
 * not tell: every server counts its own, from 1.
 */
export async function together(
  commands: readonly [
    before: Promise<unknown>,
    script: Promise<unknown>,
    wait: Promise<unknown>,
    after: Promise<unknown>,
  ],
): Promise<Confirmed> {
  const [before, script, wait, after] = await Promise.allSettled(commands);
  if (script.status === "rejected") throw script.reason;
  const same =
    before.status === "fulfilled" &&
    after.status === "fulfilled" &&
    connectionIn(before.value) === connectionIn(after.value);
  const replicas = same && wait.status === "fulfilled" ? Number(wait.value) : 0;
  return { answer: script.value, replicas };
}

export const WHICH_CONNECTION = ["CLIENT", "INFO"] as const;

/** The number of the connection and its two ends, out of all that CLIENT INFO tells. */
function connectionIn(info: unknown): string {
  return (String(info).match(/\b(id|addr|laddr)=\S+/g) ?? []).join(" ");
}
