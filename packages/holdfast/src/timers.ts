import { AsyncResource } from "node:async_hooks";
import type { Timer } from "./clock.js";

// Of so many delays a timer of the host's may be left to run out when nobody needs it any more: the
// next one who wants that delay finds it there.
const MOST_LINES = 16;

// Where Node keeps the context of a resource: the first up to version 22, the second from then on.
const CONTEXTS: readonly (string | undefined)[] = ["kResourceStore", "context_frame"];

// A timer of the host's belongs to whoever made it, with all that hangs on its async context. Ours are
// everybody's, so nobody makes them.
const nobody = withoutContext(new AsyncResource("HoldfastTimers"));

/**
 * A resource has the context in which it was made: here that of whoever imports us first, and that may be
 * a request, which would be kept for ever. Node has no way to make one outside of all; where it keeps the
 * context elsewhere one day, this does nothing, and a test tells.
 */
function withoutContext(resource: AsyncResource): AsyncResource {
  for (const key of Object.getOwnPropertySymbols(resource)) {
    if (CONTEXTS.includes(key.description)) Reflect.set(resource, key, undefined);
  }
  return resource;
}

/** Whose timers these are made of. */
export interface Host {
  now(): number;
  /** At the end of this turn of the event loop. */
  soon(callback: () => void): void;
  setTimer(callback: () => void, delayMs: number): NodeJS.Timeout;
}

/**
 * Nearly every timer is cancelled: the answer comes in time. One of the host's costs several times
 * what it takes to stand in a line. So those of one delay, which fall due in the order in which they
 * were set, stand in a line of their own behind one timer of the host's. That one is not moved when
 * its first is cancelled; it comes, finds that it is too early, and is set for who is first then.
 *
 * Nor is it set at once: whoever was just granted something should hear of that first, and may have
 * given it back by the end of the turn.
 */
export class Timers {
  readonly #host: Host;
  readonly #lines = new Map<number, Line>();

  constructor(host: Host) {
    this.#host = host;
  }

  /** How many of them keep the process alive. */
  get keepingAlive(): number {
    let count = 0;
    for (const line of this.#lines.values()) count += line.keepingAlive;
    return count;
  }

  /** delayMs is whole, and no longer than a host's timer can be. */
  set(delayMs: number, callback: () => void, keepAlive: boolean): Timer {
    const line = this.#lines.get(delayMs) ?? this.#newLine(delayMs);
    return line.add(callback, keepAlive);
  }

  #newLine(delayMs: number): Line {
    const line: Line = new Line(delayMs, this.#host, (comesBack) => {
      if (comesBack && this.#lines.size <= MOST_LINES) return;
      line.disarm();
      // One that was left before it was armed may have a successor by now.
      if (this.#lines.get(delayMs) === line) this.#lines.delete(delayMs);
    });
    this.#lines.set(delayMs, line);
    return line;
  }
}

class Line {
  readonly #delayMs: number;
  readonly #host: Host;
  readonly #onEmpty: (comesBack: boolean) => void;
  readonly #fire = () => this.#fired();
  readonly #armFirst = () => this.#armForFirst();
  #first: Waiting | null = null;
  #last: Waiting | null = null;
  #armed: NodeJS.Timeout | null = null;
  #isToBeArmed = false;
  #isFiring = false;
  keepingAlive = 0;

  constructor(delayMs: number, host: Host, onEmpty: (comesBack: boolean) => void) {
    this.#delayMs = delayMs;
    this.#host = host;
    this.#onEmpty = onEmpty;
  }

  add(callback: () => void, keepAlive: boolean): Timer {
    const waiting = new Waiting(this, this.#host.now() + this.#delayMs, callback, keepAlive);
    waiting.before = this.#last;
    if (this.#last === null) this.#first = waiting;
    else this.#last.after = waiting;
    this.#last = waiting;
    if (keepAlive && this.keepingAlive++ === 0) this.#armed?.ref();
    // While others are called back, it is not known yet who will be the first.
    if (this.#armed === null && !this.#isFiring && !this.#isToBeArmed) {
      this.#isToBeArmed = true;
      nobody.runInAsyncScope(this.#host.soon, this.#host, this.#armFirst);
    }
    return waiting;
  }

  cancel(waiting: Waiting): void {
    this.#remove(waiting);
    if (this.#first === null && !this.#isFiring) this.#onEmpty(true);
  }

  disarm(): void {
    if (this.#armed !== null) clearTimeout(this.#armed);
    this.#armed = null;
  }

  #armForFirst(): void {
    this.#isToBeArmed = false;
    if (this.#first === null) this.#onEmpty(false);
    else this.#arm(this.#first, this.#host.now());
  }

  #arm(first: Waiting, now: number): void {
    const leftMs = Math.max(1, Math.ceil(first.at - now));
    this.#armed = this.#host.setTimer(this.#fire, leftMs);
    if (this.keepingAlive === 0) this.#armed.unref();
  }

  #fired(): void {
    this.#armed = null;
    this.#isFiring = true;
    const now = this.#host.now();
    try {
      for (let first = this.#first; first !== null && first.at <= now; first = this.#first) {
        this.#remove(first);
        first.line = null;
        first.callback();
      }
    } finally {
      // What one of them threw is the host's to tell, and the others still have their time.
      this.#isFiring = false;
      if (this.#first === null) this.#onEmpty(false);
      else this.#arm(this.#first, now);
    }
  }

  #remove(waiting: Waiting): void {
    const { before, after } = waiting;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    // One that has grown old must not keep all that came after it alive.
    waiting.before = null;
    waiting.after = null;
    if (waiting.keepAlive && --this.keepingAlive === 0) this.#armed?.unref();
  }
}

class Waiting implements Timer {
  readonly at: number;
  readonly callback: () => void;
  readonly keepAlive: boolean;
  /** Null once it has called back or was cancelled. */
  line: Line | null;
  before: Waiting | null = null;
  after: Waiting | null = null;

  constructor(line: Line, at: number, callback: () => void, keepAlive: boolean) {
    this.line = line;
    this.at = at;
    this.callback = callback;
    this.keepAlive = keepAlive;
  }

  cancel(): void {
    const { line } = this;
    this.line = null;
    line?.cancel(this);
  }
}
