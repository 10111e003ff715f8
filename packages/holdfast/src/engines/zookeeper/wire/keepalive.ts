import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Requests } from "./requests.js";

// A third of the timeout leaves time to go to another server while a lease is still valid.
const SILENT_FOR = 1 / 3;

interface Tasks {
  /** Sends a keepalive that counts until this instant. */
  send(until: number): void;
  onSilence(silentMs: number): void;
}

/** Sends keepalives on an open connection, and notices a server that does not answer them. */
export class Keepalive {
  readonly #requests: Requests;
  readonly #tasks: Tasks;
  #heardAt = 0;
  #sentAt = 0;
  #timer: Timer | null = null;

  constructor(requests: Requests, tasks: Tasks) {
    this.#requests = requests;
    this.#tasks = tasks;
  }

  /** When the server was last heard from. */
  get heardAt(): number {
    return this.#heardAt;
  }

  heard(at: number): void {
    this.#heardAt = at;
  }

  /**
   * The server has just answered, so the first keepalive may wait, unless it is to be sent at once.
   */
  start(timeoutMs: number, everyMs: number, atOnce: boolean): void {
    this.#sentAt = this.#heardAt;
    if (atOnce) this.#send(timeoutMs, everyMs);
    else this.#arm(timeoutMs, everyMs);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(timeoutMs: number, everyMs: number): void {
    this.stop();
    this.#timer = systemClock.timer(everyMs, () => this.#send(timeoutMs, everyMs), false);
  }

  #send(timeoutMs: number, everyMs: number): void {
    const now = systemClock.now();
    const mostMs = timeoutMs * SILENT_FOR;
    // If this process was suspended, the answers have arrived but are not read yet.
    if (now - this.#sentAt > mostMs) this.#heardAt = now;
    this.#sentAt = now;
    const { oldest } = this.#requests;
    const silentMs = oldest === undefined ? 0 : now - Math.max(this.#heardAt, oldest.sentAt);
    if (silentMs > mostMs) {
      this.#tasks.onSilence(silentMs);
      return;
    }
    this.#tasks.send(now + mostMs);
    this.#arm(timeoutMs, everyMs);
  }
}
