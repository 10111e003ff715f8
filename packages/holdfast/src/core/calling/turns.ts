import type { Clock } from "../runtime/clock.js";

const CALLS_PER_TURN = 64;
const TURN_MS = 10;

/**
 * Lets the event loop turn between calls. An engine inside the process answers without ever
 * returning to the loop. So after some calls or milliseconds the next call waits for a turn:
 * renewals, timers and the rest of the program must run too.
 */
export class Turns {
  readonly #clock: Clock;
  #callsThisTurn = 0;
  #turnStartedAt = 0;
  #nextTurn: Promise<void> | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Null when a call may be sent now; else the call is sent when the promise resolves. Calls keep
   * their order.
   */
  next(): Promise<void> | null {
    this.#nextTurn ??= this.#turn();
    const tooMany = ++this.#callsThisTurn > CALLS_PER_TURN;
    const mayGoOn = !tooMany && this.#clock.now() - this.#turnStartedAt < TURN_MS;
    return mayGoOn ? null : this.#nextTurn;
  }

  #turn(): Promise<void> {
    this.#turnStartedAt = this.#clock.now();
    return new Promise((turned) =>
      setImmediate(() => {
        this.#callsThisTurn = 0;
        this.#nextTurn = null;
        turned();
      }),
    );
  }
}
