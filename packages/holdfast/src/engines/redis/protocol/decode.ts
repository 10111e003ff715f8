import type {
  Busy,
  Claim,
  Gone,
  Granted,
  Queued,
  Released,
  Renewed,
  Unknown,
  Withdrawn,
} from "../../../engine.js";
import { limitMismatch } from "../../../errors.js";
import { holderViews } from "../inspect/views.js";
import { isNumber, isTagged, isToken, listIn, numberIn, unexpectedAnswer } from "./shape.js";

// The headers of the script describe the answers. Each function knows all answers that its
// operation may give. For any other answer it throws an error with unknown effect, because a guess
// could make two holders, or a grant that nobody releases.

/** A grant as one line of text: to whom, since which heartbeat, and what. */
export interface PushedGrant {
  readonly grantId: string;
  readonly beat: number;
  readonly token: bigint;
  readonly tokens: number;
  readonly ttlMs: number;
}

const RELEASED: Released = { kind: "released" };
const REASONS: readonly unknown[] = ["expired", "replaced", "revoked", "unknown"];

export function decodeAcquire(answer: unknown, claim: Claim, since: number): Granted | Busy | Gone {
  if (isToken(answer)) return asRequested(answer, claim, since);
  if (isTagged(answer, "busy", 3)) {
    return { kind: "busy", retryAfterMs: numberIn(answer[1], 0), holders: holderViews(answer[2]) };
  }
  return decodeClaim(answer, claim, since);
}

export function decodeEnqueue(
  answer: unknown,
  claim: Claim,
  since: number,
): Granted | Queued | Gone {
  if (isToken(answer)) return asRequested(answer, claim, since);
  return decodeShortQueued(answer) ?? decodeQueued(answer) ?? decodeClaim(answer, claim, since);
}

function decodeClaim(answer: unknown, claim: Claim, since: number): Granted | Gone {
  if (isTagged(answer, "limit", 2)) {
    throw limitMismatch(claim.resource, claim.limit, numberIn(answer[1], 0) || null);
  }
  return decodeGranted(answer, since) ?? decodeGone(answer);
}

/**
 * Renewed as requested; or, if a later renewal was applied before, with the ttl that is left of it.
 */
export function decodeRenewal(answer: unknown, since: number, ttlMs: number): Renewed | Gone {
  if (isNumber(answer, 1)) return { kind: "renewed", since, ttlMs };
  if (!isTagged(answer, "renewed", 2)) return decodeGone(answer);
  return { kind: "renewed", since, ttlMs: numberIn(answer[1], 0) };
}

/**
 * The renewals, by index, that were not simply renewed, each with its answer. The others were
 * renewed.
 */
export function decodeRenewMany(
  answer: unknown,
  count: number,
): readonly (readonly [number, unknown])[] {
  if (isNumber(answer, 1)) return [];
  const list = listIn(answer);
  if (list.length === 0 || list.length % 2 !== 0) throw unexpectedAnswer(answer);
  const found: [number, unknown][] = [];
  let least = 0;
  for (let i = 0; i < list.length; i += 2) {
    const place = numberIn(list[i], least);
    if (place >= count || !Array.isArray(list[i + 1])) throw unexpectedAnswer(answer);
    found.push([place, list[i + 1]]);
    least = place + 1;
  }
  return found;
}

/**
 * Where the next holder is our own waiter, the answer carries its grant instead of a push.
 * onCarriedGrant gets it.
 */
export function decodeRelease(
  answer: unknown,
  onCarriedGrant: (pushed: PushedGrant) => void,
): Released | Gone {
  if (isNumber(answer, 1) || isTagged(answer, "released", 1)) return RELEASED;
  const pushed = typeof answer === "string" ? decodePushedGrant(answer) : null;
  if (pushed === null) return decodeGone(answer);
  onCarriedGrant(pushed);
  return RELEASED;
}

export function decodeRevoke(answer: unknown): "revoked" | "gone" {
  if (isTagged(answer, "revoked", 1)) return "revoked";
  if (isTagged(answer, "gone", 1)) return "gone";
  throw unexpectedAnswer(answer);
}

export function decodeHeartbeat(answer: unknown, since: number): Queued | Granted | Unknown {
  if (isTagged(answer, "unknown", 1)) return { kind: "unknown" };
  const known = decodeQueued(answer) ?? decodeGranted(answer, since);
  if (known === null) throw unexpectedAnswer(answer);
  return known;
}

export function decodeWithdraw(answer: unknown, since: number): Withdrawn | Granted {
  if (isTagged(answer, "withdrawn", 1)) return { kind: "withdrawn" };
  const known = decodeGranted(answer, since);
  if (known === null) throw unexpectedAnswer(answer);
  return known;
}

/** The grant in a message or in the answer to a release; null where there is none. */
export function decodePushedGrant(message: string): PushedGrant | null {
  const words = /^([0-9a-f]+) (\d+) (\d+) (\d+) (\d+)$/.exec(message);
  if (words === null || !isToken(words[3])) return null;
  return {
    grantId: words[1]!,
    beat: Number(words[2]),
    token: BigInt(words[3]!),
    tokens: Number(words[4]),
    ttlMs: Number(words[5]),
  };
}

/** The key where our call could not promote all waiters that fit; null for any other message. */
export function decodeUnfinished(message: string): string | null {
  return message.startsWith("more ") ? message.slice("more ".length) : null;
}

/** Whether the answer says that a grant was made or renewed, which a failover could undo. */
export function mustReachReplicas(answer: unknown): boolean {
  if (isNumber(answer, 1) || isToken(answer)) return true;
  return Array.isArray(answer) && (answer[0] === "granted" || answer[0] === "renewed");
}

function asRequested(token: string, { tokens, ttlMs }: Claim, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

function decodeGranted(answer: unknown, since: number): Granted | null {
  if (!isTagged(answer, "granted", 4)) return null;
  const [, token, tokens, ttlMs] = answer;
  if (!isToken(token)) throw unexpectedAnswer(token);
  const numbers = { tokens: numberIn(tokens, 1), ttlMs: numberIn(ttlMs, 1) };
  return { kind: "granted", token: BigInt(token), ...numbers, since };
}

function decodeQueued(answer: unknown): Queued | null {
  if (!isTagged(answer, "queued", 4)) return null;
  const [, position, nextMs, present] = answer;
  return {
    kind: "queued",
    position: numberIn(position, 0),
    nextHeartbeatMs: numberIn(nextMs, 0),
    holders: holderViews(present),
  };
}

/** Reads q:position:nextMs:leftMs:token:label. The label may have colons. */
function decodeShortQueued(answer: unknown): Queued | null {
  const words =
    typeof answer === "string" ? /^q:(\d+):(\d+):(\d+):(\d+):(.*)$/s.exec(answer) : null;
  if (words === null) return null;
  const [, position, nextMs, leftMs, token, label] = words;
  return {
    kind: "queued",
    position: Number(position),
    nextHeartbeatMs: Number(nextMs),
    holders: [
      {
        mode: "exclusive",
        token: BigInt(token!),
        label: label!,
        remainingMs: Number(leftMs),
        revoked: false,
      },
    ],
  };
}

function decodeGone(answer: unknown): Gone {
  if (isTagged(answer, "gone", 2) && REASONS.includes(answer[1])) {
    return { kind: "gone", why: answer[1] as Gone["why"] };
  }
  throw unexpectedAnswer(answer);
}
