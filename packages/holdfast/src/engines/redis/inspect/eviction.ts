import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { RedisConnection } from "../clients/connection.js";
import { clientError } from "../protocol/client-error.js";
import { unexpectedAnswer } from "../protocol/shape.js";

const FIRST_PAUSE_MS = 50;
const LOOKS = 7;

/**
 * Warns if this Redis may evict keys: it could evict a grant that somebody holds, and then grant
 * the resource again. The engine cannot prevent that, so it emits a process warning.
 */
export async function warnOfEviction(connection: RedisConnection): Promise<void> {
  try {
    const policies = (await memoryOf(connection)).map(policyIn);
    const evicting = policies.find((policy) => policy !== undefined && policy !== "noeviction");
    if (evicting !== undefined) warn(evicting);
  } catch (error) {
    // This user may not call INFO. Locks work without it.
    emit("failed", () => ({ during: "eviction check", error: clientError(error) }));
  }
}

/** A Cluster client that is not connected yet knows no nodes, so we try again for a while. */
async function memoryOf(connection: RedisConnection): Promise<readonly string[]> {
  for (let look = 0; ; look++) {
    const texts = await connection.info("memory");
    if (texts.length > 0 || look === LOOKS) return texts;
    await sleep(systemClock, FIRST_PAUSE_MS * 2 ** look, undefined, false);
  }
}

function policyIn(text: string): string | undefined {
  // INFO has lines of names and values. In an open transaction the answer is the word QUEUED
  // instead.
  if (!text.includes(":")) throw unexpectedAnswer(text);
  return /^maxmemory_policy:(\S+)/m.exec(text)?.[1];
}

function warn(policy: string): void {
  process.emitWarning(
    `this Redis has maxmemory-policy ${policy}: when memory runs short it may evict a lock that is ` +
      "held, and then there are two holders. Set maxmemory-policy noeviction, or give locks a Redis of their own",
    { type: "HoldfastWarning", code: "HOLDFAST_EVICTION" },
  );
}
