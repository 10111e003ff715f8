import { uptime } from "node:os";
import { emptyContext } from "./empty-context.js";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds that have passed, suspension of the machine included. Never goes back. */
  now(): number;
  /** How many jumps of the wall clock were seen so far. A jump moves no lease; it is worth a renewal. */
  readonly steps: number;
  /** Calls back once. With keepAlive, the process does not end before. */
  timer(delayMs: number, callback: () => void, keepAlive: boolean): Timer;
}

// setTimeout takes 31 bits; longer delays are walked in pieces.
const LONGEST_MS = 2 ** 31 - 1;
// Below this a difference between two clocks is the time it took to read them.
const NOISE_MS = 20;
// os.uptime has a resolution of 10 ms and is read twice.
const SUSPENSION_MS = 100;

/** The host's monotonic clock: equal for all processes of one boot and time namespace. */
export function hostInstant(): number {
  // By index: taken apart, it would cost a process that has just woken up several times as much.
  const time = process.hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

/** A Node timer of any length that has no async context. */
class NodeTimer implements Timer {
  #handle: NodeJS.Timeout;

  constructor(delayMs: number, callback: () => void, keepAlive: boolean) {
    this.#handle =
      delayMs > LONGEST_MS
        ? this.#setPiece(delayMs, callback, keepAlive)
        : setNodeTimer(Math.ceil(delayMs), callback, keepAlive);
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }

  #setPiece(leftMs: number, callback: () => void, keepAlive: boolean): NodeJS.Timeout {
    const pieceMs = Math.min(leftMs, LONGEST_MS);
    const next = () => {
      if (leftMs > pieceMs) this.#handle = this.#setPiece(leftMs - pieceMs, callback, keepAlive);
      else callback();
    };
    return setNodeTimer(Math.ceil(pieceMs), next, keepAlive);
  }
}

function setNodeTimer(delayMs: number, callback: () => void, keepAlive: boolean): NodeJS.Timeout {
  const handle = emptyContext.runInAsyncScope(setTimeout, undefined, callback, delayMs);
  if (!keepAlive) handle.unref();
  return handle;
}

class SystemClock implements Clock {
  steps = 0;
  #suspendedMs = 0;
  #wallOffset = Date.now() - hostInstant();
  #uptimeOffset = firstUptimeOffset();

  // hrtime stands still while the machine sleeps, and os.uptime, which does not, costs a file read.
  // Date.now is cheap and moves with both sleep and steps, so a change of its distance to hrtime is
  // the moment to ask os.uptime which of the two it was.
  now(): number {
    const host = hostInstant();
    const wallOffset = Date.now() - host;
    if (Math.abs(wallOffset - this.#wallOffset) > NOISE_MS) this.#lookAgain();
    return host + this.#suspendedMs;
  }

  timer(delayMs: number, callback: () => void, keepAlive: boolean): Timer {
    return new NodeTimer(delayMs, callback, keepAlive);
  }

  #lookAgain(): void {
    const wallOffset = readOffset(Date.now);
    const uptimeOffset = readOffset(uptimeMs);
    // Paused between two reads, nothing can be said. The wall offset stays, so the next call asks again.
    if (wallOffset === null || uptimeOffset === null) return;
    // It was the call before this one that was paused: a busy machine, or the garbage collector.
    if (Math.abs(wallOffset - this.#wallOffset) <= NOISE_MS) return;
    const suspendedMs = uptimeOffset - this.#uptimeOffset;
    if (suspendedMs > this.#suspendedMs + SUSPENSION_MS) this.#suspendedMs = suspendedMs;
    else this.steps++;
    this.#wallOffset = wallOffset;
  }
}

/** A clock less hrtime, or null when the process was interrupted between reading the two. */
function readOffset(clockMs: () => number): number | null {
  const before = hostInstant();
  const readMs = clockMs();
  return hostInstant() - before > NOISE_MS ? null : readMs - before;
}

function uptimeMs(): number {
  return uptime() * 1e3;
}

function firstUptimeOffset(): number {
  for (let attempt = 0; attempt < 100; attempt++) {
    const offset = readOffset(uptimeMs);
    if (offset !== null) return offset;
  }
  // A machine that cannot read two clocks in 20 ms, a hundred times over: take the reading as it is.
  return uptimeMs() - hostInstant();
}

export const systemClock: Clock = new SystemClock();

/** Resolves after delayMs; rejects with the signal's reason, and leaves no timer, when aborted. */
export function sleep(
  clock: Clock,
  delayMs: number,
  signal: AbortSignal | undefined,
  keepAlive = true,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.timer(
      delayMs,
      () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      },
      keepAlive,
    );
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
