import type { Claim, ReleaseRef } from "../../engine.js";

/** Nearly every claim is exclusive and without lock-delay: those have words of their own, and fewer. */
export function claimWords(verb: "acquire" | "enqueue", claim: Claim): string[] {
  const { grantId, mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
  if (mode === "exclusive" && lockDelayMs === 0) {
    const short = verb === "enqueue" ? "take" : "try";
    return [short, grantId, String(ttlMs), `${tokens}:${label}`];
  }
  const letter = mode === "shared" ? `s${limit ?? 0}` : "x";
  const numbers = [String(ttlMs), String(lockDelayMs), String(tokens)] as const;
  return [verb, grantId, letter, ...numbers, label];
}

export function releaseWords({ grantId, tombstoneMs }: ReleaseRef): string[] {
  if (tombstoneMs !== 0) return ["release", grantId, String(tombstoneMs)];
  return ["give", grantId];
}
