import type { HolderView, Mode, ResourceView, WaiterView } from "../../../engine.js";
import {
  isListOf,
  isToken,
  isYes,
  listIn,
  numberIn,
  textIn,
  unexpectedAnswer,
} from "../protocol/shape.js";

export function viewOf(resource: string, answer: unknown): ResourceView {
  if (!isListOf(answer, 3)) throw unexpectedAnswer(answer);
  const [present, waiters, closedMs] = answer;
  return {
    resource,
    holders: holderViews(present),
    waiters: listIn(waiters).map(waiterIn),
    closedMs: numberIn(closedMs, 0),
  };
}

export function holderViews(present: unknown): HolderView[] {
  return listIn(present).map((holder) => {
    if (!isListOf(holder, 5)) throw unexpectedAnswer(holder);
    const [mode, token, label, leftMs, isRevoked] = holder;
    return {
      mode: modeOf(mode),
      token: tokenIn(token),
      label: textIn(label),
      // The key of another program may have no expiry, which is -1.
      remainingMs: numberIn(leftMs, -1),
      revoked: isYes(isRevoked),
    };
  });
}

function waiterIn(waiter: unknown, position: number): WaiterView {
  if (!isListOf(waiter, 2)) throw unexpectedAnswer(waiter);
  return { mode: modeOf(waiter[0]), label: textIn(waiter[1]), position };
}

/** A holder of another program has token 0. */
function tokenIn(token: unknown): bigint {
  if (token === "0" || isToken(token)) return BigInt(token);
  throw unexpectedAnswer(token);
}

function modeOf(letter: unknown): Mode {
  if (letter === "s") return "shared";
  if (letter === "x") return "exclusive";
  throw unexpectedAnswer(letter);
}
