import type { Claim, ReleaseRef, RenewRef } from "../../../engine.js";
import { keysOf } from "./keys.js";

/** words: the operation's name and arguments, as the headers of the script say. */
export interface EncodedOperation {
  readonly key: string;
  /** The keys of all resources, where the operation is about several. */
  readonly keys?: readonly string[];
  readonly words: readonly string[];
}

/** The keys and arguments of one call of the script. */
export interface ScriptArguments {
  readonly keys: string[];
  readonly args: string[];
  /** Whether there is one operation, whose answer is not in a list. */
  readonly alone: boolean;
}

// The script cuts the grant id off by this length.
const ID_LENGTH = 32;

/**
 * Nearly all claims are exclusive and without lock-delay, nearly all renewals stay, and nearly all
 * releases leave no tombstone. Those are encoded as one word, because each word costs time in the
 * client, the server and the script. An enqueue counts as a heartbeat, and beat is its number; an
 * acquire has beat 0.
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

/** order: the script applies a grant's renewals by their order, not by their arrival. */
export function encodeRenewal(ref: RenewRef, order: number): string[] {
  const { grantId, ttlMs, index = 0, leave = false } = ref;
  if (!leave && grantId.length === ID_LENGTH) return [`=${grantId}${ttlMs}:${index}:${order}`];
  return ["renew", grantId, String(ttlMs), String(index), String(order), leave ? "1" : "0"];
}

/** Many renewals with the same ttl and index. None of them leaves its grant behind. */
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

/**
 * On the channel the caller hears of its waiters' grants. The answer to a release may carry one,
 * too.
 */
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
