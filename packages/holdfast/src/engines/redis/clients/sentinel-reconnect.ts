import { sleep, systemClock } from "../../../core/runtime/clock.js";

const POLL_MS = 20;
const MOST_WAIT_MS = 1_000;

interface ReconnectingClient {
  readonly isOpen: boolean;
  /** Where the primary is; undefined while the connection to it is away. */
  getMasterNode(): unknown;
}

/**
 * node-redis' client for Sentinels is back as soon as the primary is, if it is left alone. EncodedOperation
 * meanwhile, it gives up the connection that is about to come back and looks for a primary; where it
 * can reach none, it rests for a second, and every call with it. So calls wait for the connection, for
 * as long as that rest would take; after that it is worth a look.
 */
export class SentinelReconnect {
  readonly #client: () => ReconnectingClient | null;
  #waiting: Promise<void> | null = null;
  #hasWaited = false;

  constructor(client: () => ReconnectingClient | null) {
    this.#client = client;
  }

  /** What to wait for before a call, or null. Calls that wait go on in their order. */
  wait(): Promise<void> | null {
    if (this.#waiting !== null) return this.#waiting;
    if (this.#isConnected()) this.#hasWaited = false;
    else if (!this.#hasWaited) this.#waiting = this.#waitUntilConnected();
    return this.#waiting;
  }

  // A client that was closed does not come back.
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
