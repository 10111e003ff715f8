import type { ResourceState, StoredWaiter } from "./node-memory.js";

const WAITS_MS = 2_500;
const MOST_LOOKED_AT = 16;

export interface QueuedClaim {
  readonly id: string;
  readonly mode: "x" | "s";
  readonly ticket: number;
}

export function enqueue(
  state: ResourceState,
  claim: QueuedClaim & { arrivalMs: number },
  at: number,
): void {
  const { id, ticket, mode, arrivalMs } = claim;
  state.queue.set(id, { ticket, mode, arrivalMs, ends: at + WAITS_MS });
}

/**
 * Like the script: the first waiter that comes before this claim. Calls it if it was not called
 * yet.
 */
export function firstWaiter(
  state: ResourceState,
  { id, mode, ticket }: QueuedClaim,
  at: number,
  isFree: boolean,
  call: (ticket: number) => void,
): string | null {
  const all = [...state.queue].sort(inOrder).slice(0, MOST_LOOKED_AT);
  const { called } = state;
  for (const [one, { ticket: rank, mode: theirs, arrivalMs, ends }] of all) {
    if (one === id || (ticket > 0 && rank > ticket)) return null;
    const isLate = isFree && called?.id === one && at > called.at + arrivalMs;
    if (ends <= at || isLate) state.queue.delete(one);
    else if (mode === "x" || theirs === "x") {
      if (isFree && called?.id !== one) {
        state.called = { id: one, at };
        call(theirs === "x" ? rank : 0);
      }
      return one;
    }
  }
  return null;
}

function inOrder([a, one]: [string, StoredWaiter], [b, other]: [string, StoredWaiter]): number {
  return one.ticket - other.ticket || (a < b ? -1 : 1);
}
