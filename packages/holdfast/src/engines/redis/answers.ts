import type {
  Busy,
  Claim,
  Gone,
  Granted,
  HolderView,
  Mode,
  Queued,
  ResourceView,
} from "../../engine.js";
import { limitMismatch } from "../../errors.js";

/** What the script gives, turned into the contract's answers. The script's headers say the shapes. */
type Raw = readonly unknown[];

export function word(answer: unknown): string {
  return String((answer as Raw)[0]);
}

/** A renewal or a release that was carried out; what else it may be, `gone` reads. */
export function isDone(answer: unknown): boolean {
  return !Array.isArray(answer) || word(answer) === "released" || word(answer) === "renewed";
}

export function acquired(
  answer: unknown,
  claim: Claim,
  since: number,
): Granted | Busy | Queued | Gone {
  if (typeof answer === "string") {
    if (isInLine(answer)) return shortlyQueued(answer);
    const { tokens, ttlMs } = claim;
    return { kind: "granted", token: BigInt(answer), tokens, since, ttlMs };
  }
  const [kind, first, second] = answer as Raw;
  if (kind === "granted") return granted(answer, since);
  if (kind === "queued") return queued(answer);
  if (kind === "busy")
    return { kind: "busy", retryAfterMs: Number(first), holders: holders(second) };
  if (kind === "limit") {
    throw limitMismatch(claim.resource, claim.limit, Number(first) === 0 ? null : Number(first));
  }
  return gone(answer);
}

/** Whether it says that a grant was made or lives on, which a failover could take back. */
export function isKept(answer: unknown): boolean {
  if (typeof answer === "string") return !isInLine(answer);
  return !Array.isArray(answer) || word(answer) === "granted" || word(answer) === "renewed";
}

function isInLine(answer: string): boolean {
  return answer.startsWith("q");
}

export function granted(answer: unknown, since: number): Granted {
  const [, token, tokens, ttlMs] = answer as Raw;
  const numbers = { token: BigInt(String(token)), tokens: Number(tokens) };
  return { kind: "granted", ...numbers, since, ttlMs: Number(ttlMs) };
}

export function queued(answer: unknown): Queued {
  const [, position, nextMs, present] = answer as Raw;
  return {
    kind: "queued",
    position: Number(position),
    nextHeartbeatMs: Number(nextMs),
    holders: holders(present),
  };
}

/** As q:position:nextMs:leftMs:token:label. Labels may have colons. */
function shortlyQueued(answer: string): Queued {
  const [, position, nextMs, leftMs, token, label] = /^q:(\d+):(\d+):(\d+):(\d+):(.*)$/s.exec(
    answer,
  )!;
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

export function gone(answer: unknown): Gone {
  return { kind: "gone", why: String((answer as Raw)[1]) as Gone["why"] };
}

export function viewOf(resource: string, answer: unknown): ResourceView {
  const [present, waiters, closedMs] = answer as [unknown, Raw[], unknown];
  return {
    resource,
    holders: holders(present),
    waiters: waiters.map(([mode, label], position) => ({
      mode: modeOf(mode),
      label: String(label),
      position,
    })),
    closedMs: Number(closedMs),
  };
}

function holders(present: unknown): HolderView[] {
  return (present as Raw[]).map(([mode, token, label, leftMs, revoked]) => ({
    mode: modeOf(mode),
    token: BigInt(String(token)),
    label: String(label),
    remainingMs: Number(leftMs),
    revoked: Number(revoked) === 1,
  }));
}

function modeOf(letter: unknown): Mode {
  return letter === "s" ? "shared" : "exclusive";
}
