import { mintGrantId } from "../core/holding/grant-id.js";
import type { Claim } from "../engine.js";

/** For tests with an engine alone: an exclusive claim with an id of its own, unless they say otherwise. */
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
