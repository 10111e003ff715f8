import type { Room, Waiting } from "./node-memory.js";

const WAITS_MS = 2_500;
const MOST_LOOKED_AT = 16;

export interface Standing {
  readonly id: string;
  readonly mode: "x" | "s";
  readonly ticket: number;
}

export function standInLine(room: Room, who: Standing & { arrivalMs: number }, at: number): void {
  const { id, ticket, mode, arrivalMs } = who;
  room.line.set(id, { ticket, mode, arrivalMs, ends: at + WAITS_MS });
}

/** As the script has it: who is let in before this claim, and is called if it was not. */
export function firstInLine(
  room: Room,
  { id, mode, ticket }: Standing,
  at: number,
  isFree: boolean,
  call: (ticket: number) => void,
): string | null {
  const all = [...room.line].sort(inOrder).slice(0, MOST_LOOKED_AT);
  const { called } = room;
  for (const [one, { ticket: rank, mode: theirs, arrivalMs, ends }] of all) {
    if (one === id || (ticket > 0 && rank > ticket)) return null;
    const isLate = isFree && called?.id === one && at > called.at + arrivalMs;
    if (ends <= at || isLate) room.line.delete(one);
    else if (mode === "x" || theirs === "x") {
      if (isFree && called?.id !== one) {
        room.called = { id: one, at };
        call(theirs === "x" ? rank : 0);
      }
      return one;
    }
  }
  return null;
}

function inOrder([a, one]: [string, Waiting], [b, other]: [string, Waiting]): number {
  return one.ticket - other.ticket || (a < b ? -1 : 1);
}
