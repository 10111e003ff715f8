import type { Claim, ReleaseRef, RenewRef } from "../../../engine.js";
import { keysOf } from "./keys.js";

/** words: the name of the operation and its arguments, as the script's headers give them. */
export interface EncodedOperation {
  readonly key: string;
  /** All of them, where it is about several resources. */
  readonly keys?: readonly string[];
  readonly words: readonly string[];
}

/** Operations as the script reads them. */
export interface ScriptArguments {
  readonly keys: string[];
  readonly args: string[];
  /** Whether it is one operation, whose answer is not in a list. */
  readonly alone: boolean;
}

// What the script cuts off by its length.
const ID_LENGTH = 32;

/**
 * Nearly every claim is exclusive and without lock-delay, nearly every renewal of one that stays, and
 * nearly every release without a tombstone. Those are one word: each costs the client, the server and
 * the script. An enqueue counts as a heartbeat, and has its number among them; an acquire has none, 0.
 */
export function encodeClaim(verb: "acquire" | "enqueue", claim: Claim, beat: number): string[] {
  const { grantId, mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
  const isPlain = mode === "exclusive" && lockDelayMs === 0;
  if (isPlain && grantId.length === ID_LENGTH) {
    return [`${verb === "enqueue" ? "+" : "?"}${grantId}${ttlMs}:${beat}:${tokens}:${label}`];
  }
  const letter = mode === "shared" ? `s${limit ?? 0}` : "x";
  const numbers = [String(ttlMs), String(lockDelayMs), String(tokens)] as const;
  const words = [verb, grantId, letter, ...numbers, label];
  return verb === "enqueue" ? [...words, String(beat)] : words;
}

/** Renewals of a grant take effect in their order, whenever they arrive. */
export function encodeRenewal(ref: RenewRef, order: number): string[] {
  const { grantId, ttlMs, index = 0, leave = false } = ref;
  if (!leave && grantId.length === ID_LENGTH) return [`=${grantId}${ttlMs}:${index}:${order}`];
  return ["renew", grantId, String(ttlMs), String(index), String(order), leave ? "1" : "0"];
}

/** Many of one ttl and index, none of which leaves. */
export function encodeRenewMany(
  ttlMs: number,
  index: number,
  order: number,
  ids: string[],
): string[] {
  return ["renew-many", String(ttlMs), String(index), String(order), ids.join("")];
}

export function encodeRelease({ grantId, tombstoneMs }: ReleaseRef): string[] {
  if (tombstoneMs === 0 && grantId.length === ID_LENGTH) return [`-${grantId}`];
  return ["release", grantId, String(tombstoneMs)];
}

/** The channel is where the caller hears of its waiters' grants; one of its own is told by the answer. */
export function encodeBatch(
  asked: readonly EncodedOperation[],
  channel: string,
  cluster: boolean,
): ScriptArguments {
  const first = asked[0]!;
  const args = [channel];
  if (asked.length === 1 && first.keys === undefined && !cluster) {
    for (let i = 0; i < first.words.length; i++) args.push(first.words[i]!);
    return { keys: [first.key], args, alone: true };
  }
  const keys: string[] = [];
  for (const { key, keys: all, words } of asked) {
    for (const word of words) args.push(word);
    if (all !== undefined) for (const one of all) keys.push(one);
    else if (cluster) keys.push(...keysOf(key));
    else keys.push(key);
  }
  return { keys, args, alone: asked.length === 1 };
}
