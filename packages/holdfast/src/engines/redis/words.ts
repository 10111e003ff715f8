import type { Claim, ReleaseRef } from "../../engine.js";
import { touchedBy } from "./keys.js";

// Of each grant id, which the script cuts them by.
const ID_LENGTH = 32;

/** words: the name of the operation and its arguments, as the script's headers give them. */
export interface Asked {
  readonly key: string;
  readonly words: readonly string[];
}

/** Operations as the script reads them. */
export interface Sent {
  readonly keys: string[];
  readonly args: string[];
  /** Whether it is one operation, whose answer is not in a list. */
  readonly alone: boolean;
  /** Of how many operations each that is sent is made; null where each is made of one. */
  readonly counts: readonly number[] | null;
}

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

/**
 * The channel is where the caller hears of its waiters' grants; one of its own is told by the answer.
 * Renewals for one ttl that follow each other are sent as one `keep`: a client spends most of what a
 * renewal costs on its arguments and its answer.
 */
export function wordsOf(asked: readonly Asked[], channel: string, cluster: boolean): Sent {
  const keys: string[] = [];
  const args = [channel];
  let counts: number[] | null = null;
  for (let i = 0; i < asked.length; ) {
    const end = endOfKeep(asked, i);
    const { words } = asked[i]!;
    if (end > i + 1) {
      counts ??= new Array<number>(i).fill(1);
      let ids = "";
      for (let j = i; j < end; j++) ids += asked[j]!.words[1];
      args.push("keep", words[2]!, ids);
    } else for (const word of words) args.push(word);
    counts?.push(end - i);
    for (; i < end; i++) {
      const { key, words } = asked[i]!;
      if (cluster) keys.push(...touchedBy(key, words[1] ?? ""));
      else keys.push(key);
    }
  }
  return { keys, args, alone: asked.length === 1, counts };
}

/** Where the renewals end that go together with this one; right after it where none do. */
function endOfKeep(asked: readonly Asked[], start: number): number {
  const [name, id, ttl] = asked[start]!.words;
  let end = start + 1;
  if (name !== "renew" || id!.length !== ID_LENGTH) return end;
  for (; end < asked.length; end++) {
    const { words } = asked[end]!;
    if (words[0] !== name || words[2] !== ttl || words[1]!.length !== ID_LENGTH) break;
  }
  return end;
}

/** An answer to each that was asked, or the answer where one alone was. */
export function answersOf({ counts }: Sent, answer: unknown): unknown {
  if (counts === null) return answer;
  const list = counts.length === 1 ? [answer] : (answer as unknown[]);
  const all: unknown[] = [];
  for (let i = 0; i < counts.length; i++) {
    const start = all.length;
    const count = counts[i]!;
    if (count === 1) {
      all.push(list[i]);
      continue;
    }
    for (let j = 0; j < count; j++) all.push(1);
    const rest = list[i];
    // Those that are not plain: which, and its answer.
    if (Array.isArray(rest)) {
      for (let j = 0; j < rest.length; j += 2) all[start + Number(rest[j])] = rest[j + 1];
    }
  }
  return all;
}
