import type { ReplicatedAnswer } from "../clients/connection.js";
import { numberIn } from "../protocol/shape.js";

/**
 * The script's answer, and how many replicas have its writes. WAIT counts the replicas that have
 * the writes of its own connection. A client may reconnect at any moment, and on a new connection,
 * which wrote nothing, all replicas count. So the caller sends the four commands together, and the
 * count is valid only if the first and the last ran on the same connection. The connection's number
 * is not enough to tell: every server counts its own, from 1.
 */
export async function waitReplicas(
  commands: readonly [
    before: Promise<unknown>,
    script: Promise<unknown>,
    wait: Promise<unknown>,
    after: Promise<unknown>,
  ],
): Promise<ReplicatedAnswer> {
  const [before, script, wait, after] = await Promise.allSettled(commands);
  if (script.status === "rejected") throw script.reason;
  const identity = identityIn(before);
  const same = identity !== null && identity === identityIn(after);
  return { answer: script.value, replicas: same ? countIn(wait) : 0 };
}

export const WHICH_CONNECTION = ["CLIENT", "INFO"] as const;

/** The number and both addresses of the connection, from CLIENT INFO. */
function identityIn(info: PromiseSettledResult<unknown>): string | null {
  if (info.status === "rejected" || typeof info.value !== "string") return null;
  return info.value.match(/\b(id|addr|laddr)=\S+/g)?.join(" ") ?? null;
}

function countIn(wait: PromiseSettledResult<unknown>): number {
  return wait.status === "rejected" ? 0 : numberIn(wait.value, 0);
}
