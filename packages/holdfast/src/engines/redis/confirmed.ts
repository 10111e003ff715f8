import type { Confirmed } from "./client.js";

/**
 * WAIT tells how many replicas have what this connection wrote, and a client may reconnect at any
 * moment: on a new connection, which wrote nothing, all have everything. So the four commands go out
 * together, and count only if the first and the last met the same connection.
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
    String(before.value) === String(after.value);
  const replicas = same && wait.status === "fulfilled" ? Number(wait.value) : 0;
  return { answer: script.value, replicas };
}

export const CLIENT_ID = ["CLIENT", "ID"] as const;
