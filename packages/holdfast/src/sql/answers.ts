import type {
  Busy,
  Claim,
  Failed,
  Gone,
  Granted,
  HolderView,
  Mode,
  Queued,
  ResourceView,
} from "../engine.js";
import { EngineError, type HoldfastError, limitMismatch } from "../errors.js";
import type { Raw } from "./database.js";

/** What the routines give, turned into the contract's answers. */
export function claimed(answer: Raw, claim: Claim, since: number): Granted | Busy | Queued | Gone {
  const [kind, first, second] = answer;
  if (kind === "granted") return granted(answer, since);
  if (kind === "queued") return queued(answer);
  if (kind === "busy") {
    return { kind: "busy", retryAfterMs: Number(first), holders: holders(second) };
  }
  if (kind === "limit") {
    throw limitMismatch(claim.resource, claim.limit, Number(first) === 0 ? null : Number(first));
  }
  return gone(answer);
}

export function granted([, token, tokens, ttlMs]: Raw, since: number): Granted {
  const numbers = { token: BigInt(String(token)), tokens: Number(tokens) };
  return { kind: "granted", ...numbers, since, ttlMs: Number(ttlMs) };
}

export function queued([, position, nextMs, present]: Raw): Queued {
  return {
    kind: "queued",
    position: Number(position),
    nextHeartbeatMs: Number(nextMs),
    holders: holders(present),
  };
}

export function gone([, why]: Raw): Gone {
  return { kind: "gone", why: String(why) as Gone["why"] };
}

/** One of a batch that could not be answered. */
export function failed(error: HoldfastError): Failed {
  return { kind: "failed", effect: error instanceof EngineError ? error.effect : "unknown", error };
}

export function unexpected(kind: string): EngineError {
  return new EngineError(`the database answered ${kind} to a claim that cannot be so`, {
    effect: "unknown",
    retryable: false,
  });
}

export function viewOf(resource: string, answer: Raw): ResourceView {
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
  const views = (present as Raw[]).map(([mode, token, label, leftMs, revoked]) => ({
    mode: modeOf(mode),
    token: BigInt(String(token)),
    label: String(label),
    remainingMs: Number(leftMs),
    revoked: Boolean(revoked),
  }));
  return views.sort((a, b) => (a.token < b.token ? -1 : 1));
}

function modeOf(letter: unknown): Mode {
  return letter === "s" ? "shared" : "exclusive";
}
