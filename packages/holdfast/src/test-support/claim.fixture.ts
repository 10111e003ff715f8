import { mintGrantId } from "../core/holding/grant-id.js";
import type { Claim } from "../engine.js";

/** An exclusive claim with its own grantId, for tests that call an engine directly. */
export function claim(resource: string, more: Partial<Claim> = {}): Claim {
  return {
    resource,
    grantId: mintGrantId(),
    mode: "exclusive",
    limit: null,
    ttlMs: 10_000,
    lockDelayMs: 0,
    tokens: 1,
    label: "test",
    ...more,
  };
}
