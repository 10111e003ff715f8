import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { RedisConnection } from "../clients/connection.js";
import { clientError } from "../protocol/client-error.js";
import { unexpectedAnswer } from "../protocol/shape.js";

const FIRST_PAUSE_MS = 50;
const LOOKS = 7;

/**
 * A Redis that evicts may throw away a grant that somebody holds, and the next one is let in. Nothing
 * here can prevent that, so whoever runs the process is told.
 */
export async function warnOfEviction(connection: RedisConnection): Promise<void> {
  try {
    const policies = (await memoryOf(connection)).map(policyIn);
    const evicting = policies.find((policy) => policy !== undefined && policy !== "noeviction");
    if (evicting !== undefined) warn(evicting);
  } catch (error) {
    // A user without the right to INFO; locks need no other answer from it.
    emit("failed", () => ({ during: "eviction check", error: clientError(error) }));
  }
}

/** A client of a Cluster that is not connected yet knows of nobody to ask. */
async function memoryOf(connection: RedisConnection): Promise<readonly string[]> {
  for (let look = 0; ; look++) {
    const texts = await connection.info("memory");
    if (texts.length > 0 || look === LOOKS) return texts;
    await sleep(systemClock, FIRST_PAUSE_MS * 2 ** look, undefined, false);
  }
}

function policyIn(text: string): string | undefined {
  // INFO is lines of names and values; one word is what a transaction says instead.
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
