import type { Claim, HolderView } from "../../engine.js";
import { EngineError, HoldfastError, UsageError } from "../../errors.js";
import type { Waiter } from "./waiter-heartbeats.js";

/**
 * A claim under one grantId: what the backend may know of it, and its place in the backend's queue.
 */
export class SentClaim {
  readonly claim: Claim;
  /** Whether the backend may know of it. */
  isExposed = false;
  /** How many requests are unanswered, and whether the answer to one was lost. */
  unanswered = 0;
  lost = false;
  /** Whether the claim is given up. A grant that is reported after that must be released. */
  isOver = false;
  // The fields from here on describe the place in the queue. Only the heartbeats write them. waiter
  // is null while the claim is in no queue.
  waiter: Waiter | null = null;
  holders: readonly HolderView[] = [];
  dueAt = Infinity;
  intervalMs = 0;
  /** How many heartbeats in a row failed. */
  failures = 0;

  constructor(claim: Claim) {
    this.claim = claim;
  }

  /**
   * Whether a request may still be on its way: its answer was lost, or has not come yet. The
   * release must leave a tombstone then, or a late request creates a grant that nobody releases.
   */
  get mayArrive(): boolean {
    return this.lost || this.unanswered > 0;
  }
}

/** Whether an answer says that the backend has a grant or a waiter. */
export function isPresent(answer: { readonly kind?: unknown }): boolean {
  return answer.kind === "granted" || answer.kind === "queued";
}

/** Whether an error guarantees that nothing changed at the backend. */
export function hadNoEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
