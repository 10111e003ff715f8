import type { Claim, HolderView } from "../../engine.js";
import { EngineError, HoldfastError, UsageError } from "../../errors.js";
import { UnansweredRequests } from "./unanswered-requests.js";
import type { Waiter } from "./waiter-heartbeats.js";

/** A claim under one grantId: what the backend may know of it, and its place in the backend's line. */
export class SentClaim extends UnansweredRequests {
  readonly claim: Claim;
  /** Whether the backend may know of it. */
  isExposed = false;
  // From here on: of its place, for the pulse to change. Null while it stands in no line.
  waiter: Waiter | null = null;
  holders: readonly HolderView[] = [];
  dueAt = Infinity;
  intervalMs = 0;
  /** How many heartbeats in a row failed. */
  failures = 0;

  constructor(claim: Claim) {
    super();
    this.claim = claim;
  }
}

/** Whether an answer says that the backend has a grant or a waiter. */
export function isPresent(answer: { readonly kind?: unknown }): boolean {
  return answer.kind === "granted" || answer.kind === "queued";
}

/** Whether an error vouches for it that nothing changed at the backend. */
export function hadNoEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
