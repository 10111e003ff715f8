import type { Held } from "./mark.js";

/** A lease with any token. Leases of a real engine play in sellers.test.ts. */
export function held(resource: string, token: bigint): Held {
  return { resource, token, assertHeld: () => {} };
}
