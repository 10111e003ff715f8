import type { Claim, ReleaseRef } from "../../engine.js";

/** Nearly every claim is exclusive and without lock-delay: those have words of their own, and fewer. */
export function claimWords(verb: "acquire" | "enqueue", claim: Claim, channel: string): string[] {
  const { grantId, mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
  if (mode === "exclusive" && lockDelayMs === 0) {
    const short = verb === "enqueue" ? "take" : "try";
    return [short, grantId, String(ttlMs), String(tokens), label, channel];
  }
  const letter = mode === "shared" ? `s${limit ?? 0}` : "x";
  const numbers = [String(ttlMs), String(lockDelayMs), String(tokens)] as const;
  return [verb, grantId, letter, ...numbers, label, channel];
}

/** The channel is where the caller hears grants: a waiter of its own is told by the answer. */
export function releaseWords({ grantId, tombstoneMs }: ReleaseRef, channel: string): string[] {
  if (tombstoneMs !== 0) return ["release", grantId, String(tombstoneMs)];
  return ["give", grantId, channel];
}
