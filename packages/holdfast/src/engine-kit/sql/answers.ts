import type {
  Busy,
  Claim,
  Gone,
  Granted,
  HolderView,
  Mode,
  Queued,
  Renewed,
  ResourceView,
} from "../../engine.js";
import { type EngineError, limitMismatch } from "../../errors.js";
import type { RawAnswer } from "./database.js";
import { count, list, lists, oneOf, text, token, unreadable } from "./shape.js";

/** Turns what the routines return into the contract's answers. */
export function claimed(
  answer: RawAnswer,
  claim: Claim,
  since: number,
): Granted | Busy | Queued | Gone {
  switch (answer[0]) {
    case "granted":
      return granted(answer, since);
    case "queued":
      return queued(answer);
    case "busy": {
      const [, retryMs, present] = list(answer, 3);
      return { kind: "busy", retryAfterMs: count(retryMs), holders: holders(present) };
    }
    case "limit": {
      const [, inUse] = list(answer, 2);
      throw limitMismatch(claim.resource, claim.limit, count(inUse) === 0 ? null : count(inUse));
    }
    default:
      return gone(answer);
  }
}

export function granted(answer: RawAnswer, since: number): Granted {
  const [kind, first, tokens, ttlMs] = list(answer, 4);
  const numbers = { token: token(first), tokens: count(tokens), ttlMs: count(ttlMs) };
  return { kind: oneOf(kind, "granted"), since, ...numbers };
}

export function queued(answer: RawAnswer): Queued {
  const [kind, position, nextMs, present] = list(answer, 4);
  return {
    kind: oneOf(kind, "queued"),
    position: count(position),
    nextHeartbeatMs: count(nextMs),
    holders: holders(present),
  };
}

/**
 * ttlMs is what the grant has from now on. It is less than the caller asked for if a later renewal
 * was carried out before this one.
 */
export function renewed(answer: RawAnswer, since: number): Renewed | Gone {
  if (answer[0] !== "renewed") return gone(answer);
  const [, ttlMs] = list(answer, 2);
  return { kind: "renewed", since, ttlMs: count(ttlMs) };
}

export function gone(answer: RawAnswer): Gone {
  const [kind, why] = list(answer, 2);
  return {
    kind: oneOf(kind, "gone"),
    why: oneOf(why, "expired", "replaced", "revoked", "unknown"),
  };
}

export function revoked(answer: unknown): "revoked" | "gone" {
  return oneOf(list(answer, 1)[0], "revoked", "gone");
}

export function unexpected(kind: string): EngineError {
  return unreadable(`${kind} is no answer to this`);
}

export function viewOf(resource: string, answer: unknown): ResourceView {
  const [present, waiters, closedMs] = list(answer, 3);
  return {
    resource,
    holders: holders(present),
    waiters: lists(waiters).map((waiter, position) => {
      const [letter, label] = list(waiter, 2);
      return { mode: modeOf(letter), label: text(label), position };
    }),
    closedMs: count(closedMs),
  };
}

/** A page carries the word "page", so that an empty list is not mistaken for an empty page. */
export function pageOf(answer: unknown): (readonly [name: string, view: ResourceView])[] {
  const [kind, entries] = list(answer, 2);
  oneOf(kind, "page");
  return lists(entries).map((entry) => {
    const [name, view] = list(entry, 2);
    return [text(name), viewOf(text(name), view)];
  });
}

function holders(present: unknown): HolderView[] {
  const views = lists(present).map((holder) => {
    const [letter, inUse, label, leftMs, isRevoked] = list(holder, 5);
    return {
      mode: modeOf(letter),
      token: token(inUse),
      label: text(label),
      remainingMs: count(leftMs),
      revoked: Boolean(oneOf<unknown>(isRevoked, true, false, 1, 0)),
    };
  });
  return views.sort((a, b) => (a.token < b.token ? -1 : 1));
}

function modeOf(letter: unknown): Mode {
  return oneOf(letter, "x", "s") === "s" ? "shared" : "exclusive";
}
