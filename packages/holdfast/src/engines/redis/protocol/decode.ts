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
import { holders } from "../inspect/views.js";
import { isNumber, isToken, listIn, misfit, numberIn, says } from "./shape.js";

// The script's headers say the shapes. Each reader knows all that its operation may answer, and throws
// an error with an unknown effect for everything else: a guess would make two holders, or an orphan.

/** A grant as one line of text: to whom, since which heartbeat, and what. */
export interface Pushed {
  readonly grantId: string;
  readonly beat: number;
  readonly token: bigint;
  readonly tokens: number;
  readonly ttlMs: number;
}

const RELEASED: Released = { kind: "released" };
const REASONS: readonly unknown[] = ["expired", "replaced", "revoked", "unknown"];

export function tried(answer: unknown, claim: Claim, since: number): Granted | Busy | Gone {
  if (isToken(answer)) return plainly(answer, claim, since);
  if (says(answer, "busy", 3)) {
    return { kind: "busy", retryAfterMs: numberIn(answer[1], 0), holders: holders(answer[2]) };
  }
  return decided(answer, claim, since);
}

export function enqueued(answer: unknown, claim: Claim, since: number): Granted | Queued | Gone {
  if (isToken(answer)) return plainly(answer, claim, since);
  return shortlyQueued(answer) ?? queued(answer) ?? decided(answer, claim, since);
}

function decided(answer: unknown, claim: Claim, since: number): Granted | Gone {
  if (says(answer, "limit", 2)) {
    throw limitMismatch(claim.resource, claim.limit, numberIn(answer[1], 0) || null);
  }
  return granted(answer, since) ?? gone(answer);
}

/** As it was asked for, or for what remains where a later renewal has been carried out already. */
export function renewed(answer: unknown, since: number, ttlMs: number): Renewed | Gone {
  if (isNumber(answer, 1)) return { kind: "renewed", since, ttlMs };
  if (!says(answer, "renewed", 2)) return gone(answer);
  return { kind: "renewed", since, ttlMs: numberIn(answer[1], 0) };
}

/** Those of many renewals that are not plain: which of them, and its answer. The others are renewed. */
export function exceptions(
  answer: unknown,
  count: number,
): readonly (readonly [number, unknown])[] {
  if (isNumber(answer, 1)) return [];
  const list = listIn(answer);
  if (list.length === 0 || list.length % 2 !== 0) throw misfit(answer);
  const found: [number, unknown][] = [];
  let least = 0;
  for (let i = 0; i < list.length; i += 2) {
    const place = numberIn(list[i], least);
    if (place >= count || !Array.isArray(list[i + 1])) throw misfit(answer);
    found.push([place, list[i + 1]]);
    least = place + 1;
  }
  return found;
}

/**
 * Where our own waiter is the next holder, the answer carries its grant: what would have been pushed to
 * us. onCarriedGrant is told of it.
 */
export function released(
  answer: unknown,
  onCarriedGrant: (pushed: Pushed) => void,
): Released | Gone {
  if (isNumber(answer, 1) || says(answer, "released", 1)) return RELEASED;
  const pushed = typeof answer === "string" ? pushedIn(answer) : null;
  if (pushed === null) return gone(answer);
  onCarriedGrant(pushed);
  return RELEASED;
}

export function revoked(answer: unknown): "revoked" | "gone" {
  if (says(answer, "revoked", 1)) return "revoked";
  if (says(answer, "gone", 1)) return "gone";
  throw misfit(answer);
}

export function beaten(answer: unknown, since: number): Queued | Granted | Unknown {
  if (says(answer, "unknown", 1)) return { kind: "unknown" };
  const known = queued(answer) ?? granted(answer, since);
  if (known === null) throw misfit(answer);
  return known;
}

export function withdrawn(answer: unknown, since: number): Withdrawn | Granted {
  if (says(answer, "withdrawn", 1)) return { kind: "withdrawn" };
  const known = granted(answer, since);
  if (known === null) throw misfit(answer);
  return known;
}

/** What a message or a release says; null where it says nothing of a grant. */
export function pushedIn(message: string): Pushed | null {
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

/** The key whose waiters a call of ours had to leave in line, though more of them fit; or null. */
export function unfinishedIn(message: string): string | null {
  return message.startsWith("more ") ? message.slice("more ".length) : null;
}

/** Whether it says that a grant was made or lives on, which a failover could take back. */
export function isKept(answer: unknown): boolean {
  if (isNumber(answer, 1) || isToken(answer)) return true;
  return Array.isArray(answer) && (answer[0] === "granted" || answer[0] === "renewed");
}

/** As it was asked for. */
function plainly(token: string, { tokens, ttlMs }: Claim, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

function granted(answer: unknown, since: number): Granted | null {
  if (!says(answer, "granted", 4)) return null;
  const [, token, tokens, ttlMs] = answer;
  if (!isToken(token)) throw misfit(token);
  const numbers = { tokens: numberIn(tokens, 1), ttlMs: numberIn(ttlMs, 1) };
  return { kind: "granted", token: BigInt(token), ...numbers, since };
}

function queued(answer: unknown): Queued | null {
  if (!says(answer, "queued", 4)) return null;
  const [, position, nextMs, present] = answer;
  return {
    kind: "queued",
    position: numberIn(position, 0),
    nextHeartbeatMs: numberIn(nextMs, 0),
    holders: holders(present),
  };
}

/** As q:position:nextMs:leftMs:token:label. Labels may have colons. */
function shortlyQueued(answer: unknown): Queued | null {
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

function gone(answer: unknown): Gone {
  if (says(answer, "gone", 2) && REASONS.includes(answer[1])) {
    return { kind: "gone", why: answer[1] as Gone["why"] };
  }
  throw misfit(answer);
}
