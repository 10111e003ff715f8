import type { ReplicatedAnswer } from "../clients/connection.js";
import { numberIn } from "../protocol/shape.js";

/**
 * WAIT tells how many replicas have what this connection wrote, and a client may reconnect at any
 * moment: on a new connection, which wrote nothing, all have everything. So the four commands go out
 * waitReplicas, and count only if the first and the last met the same connection. Its number alone does
 * not tell: every server counts its own, from 1.
 */
export async function waitReplicas(
  commands: readonly [
    before: Promise<unknown>,
    runScript: Promise<unknown>,
    wait: Promise<unknown>,
    after: Promise<unknown>,
  ],
): Promise<ReplicatedAnswer> {
  const [before, script, wait, after] = await Promise.allSettled(commands);
  if (script.status === "rejected") throw script.reason;
  const connection = connectionIn(before);
  const same = connection !== null && connection === connectionIn(after);
  return { answer: script.value, replicas: same ? countIn(wait) : 0 };
}

export const WHICH_CONNECTION = ["CLIENT", "INFO"] as const;

/** The number of the connection and its two ends, out of all that CLIENT INFO tells. */
function connectionIn(info: PromiseSettledResult<unknown>): string | null {
  if (info.status === "rejected" || typeof info.value !== "string") return null;
  return info.value.match(/\b(id|addr|laddr)=\S+/g)?.join(" ") ?? null;
}

function countIn(wait: PromiseSettledResult<unknown>): number {
  return wait.status === "rejected" ? 0 : numberIn(wait.value, 0);
}
