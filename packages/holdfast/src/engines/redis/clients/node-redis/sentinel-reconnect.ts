import { sleep, systemClock } from "../../../../core/runtime/clock.js";

const POLL_MS = 20;
const MOST_WAIT_MS = 1_000;

interface ReconnectingClient {
  readonly isOpen: boolean;
  /** The primary's address; undefined while the connection to it is lost. */
  getMasterNode(): unknown;
}

/**
 * Makes calls wait while node-redis' Sentinel client reconnects. Left alone, that client is
 * connected again as soon as the primary is back. A call in between makes it drop the connection
 * that is coming back and search for a primary. If it reaches none, it pauses for a second, and all
 * calls with it. So calls wait for the connection, but only as long as that pause. After that, a
 * search is worth its price.
 */
export class SentinelReconnect {
  readonly #client: () => ReconnectingClient | null;
  #waiting: Promise<void> | null = null;
  #hasWaited = false;

  constructor(client: () => ReconnectingClient | null) {
    this.#client = client;
  }

  /** What a call must wait for, or null. Waiting calls continue in their order. */
  wait(): Promise<void> | null {
    if (this.#waiting !== null) return this.#waiting;
    if (this.#isConnected()) this.#hasWaited = false;
    else if (!this.#hasWaited) this.#waiting = this.#waitUntilConnected();
    return this.#waiting;
  }

  // Also true for a closed client, because it does not reconnect.
  #isConnected(): boolean {
    const client = this.#client();
    return client === null || !client.isOpen || client.getMasterNode() !== undefined;
  }

  async #waitUntilConnected(): Promise<void> {
    const until = systemClock.now() + MOST_WAIT_MS;
    while (!this.#isConnected() && systemClock.now() < until) {
      await sleep(systemClock, POLL_MS, undefined);
    }
    this.#waiting = null;
    this.#hasWaited = true;
  }
}
