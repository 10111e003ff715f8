import { emit } from "../../events.js";
import type { Seam } from "./client.js";

/**
 * A Redis that evicts may throw away a grant that somebody holds, and the next one is let in. Nothing
 * here can prevent that, so whoever runs the process is told.
 */
export async function warnOfEviction(seam: Seam): Promise<void> {
  try {
    const policies = (await seam.info("memory")).map(
      (text) => /^maxmemory_policy:(\S+)/m.exec(text)?.[1],
    );
    const evicting = policies.find((policy) => policy !== undefined && policy !== "noeviction");
    if (evicting !== undefined) warn(evicting);
  } catch (error) {
    // A user without the right to INFO; locks need no other answer from it.
    emit("failed", () => ({ during: "eviction check", error }));
  }
}

function warn(policy: string): void {
  process.emitWarning(
    `this Redis has maxmemory-policy ${policy}: when memory runs short it may evict a lock that is ` +
      "held, and then there are two holders. Set maxmemory-policy noeviction, or give locks a Redis of their own",
    { type: "HoldfastWarning", code: "HOLDFAST_EVICTION" },
  );
}
