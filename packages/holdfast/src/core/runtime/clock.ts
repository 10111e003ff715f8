import { uptime } from "node:os";
import { emptyContext } from "./empty-context.js";

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds, including the time that the machine was suspended. Never goes back. */
  now(): number;
  /**
   * How many jumps of the wall clock were seen so far. A jump moves no lease, but it triggers a
   * renewal.
   */
  readonly steps: number;
  /** Calls back once. With keepAlive, the process stays alive until then. */
  timer(delayMs: number, callback: () => void, keepAlive: boolean): Timer;
}

// setTimeout takes 31 bits, so longer delays are split.
const LONGEST_MS = 2 ** 31 - 1;
// A smaller difference between two clocks is the time that it took to read them.
const NOISE_MS = 20;
// os.uptime has a resolution of 10 ms and is read twice.
const SUSPENSION_MS = 100;

/** The host's monotonic clock. All processes of one boot and time namespace read the same value. */
export function hostInstant(): number {
  // Read by index: destructuring is several times slower in a process that has just woken up.
  const time = process.hrtime();
  return time[0] * 1e3 + time[1] / 1e6;
}

/** A Node timer of any length, without async context. */
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

  // hrtime stops while the machine sleeps. os.uptime does not, but reading it costs a file read.
  // Date.now is cheap and moves with both sleep and clock steps. So when its distance to hrtime
  // changes, os.uptime tells which of the two it was.
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
    // The process was interrupted between two reads, so they prove nothing. The wall offset stays,
    // and the next call asks again.
    if (wallOffset === null || uptimeOffset === null) return;
    // The interruption was in the caller's reads: a busy machine, or the garbage collector.
    if (Math.abs(wallOffset - this.#wallOffset) <= NOISE_MS) return;
    const suspendedMs = uptimeOffset - this.#uptimeOffset;
    if (suspendedMs > this.#suspendedMs + SUSPENSION_MS) this.#suspendedMs = suspendedMs;
    else this.steps++;
    this.#wallOffset = wallOffset;
  }
}

/** A clock minus hrtime, or null when the process was interrupted between the two reads. */
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
  // A hundred tries to read two clocks within 20 ms have failed: use the reading as it is.
  return uptimeMs() - hostInstant();
}

export const systemClock: Clock = new SystemClock();

/** Resolves after delayMs. On abort, rejects with the signal's reason and leaves no timer. */
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
