import { CODES, isKnownCode, isSessionError } from "./codes.js";
import { JuteReader } from "./jute.js";
import type { Part } from "./multi.js";
import type { Request, Requests } from "./requests.js";
import type { Watches } from "./watches.js";

/** The numbers of replies that answer no caller's request. */
export const XIDS = { event: -1, auth: -4, watches: -8 } as const;
const EVENTS = { deleted: 2, removed: 5 } as const;

export interface ReplyEvents {
  /** isAlive: whether the answer also says that the session was alive. */
  onAnswer(request: Request, isAlive: boolean): void;
  onExpired(): void;
  /** The servers do not accept our credentials. */
  onRefused(): void;
}

/**
 * Reads what a server sends on an open session: answers to requests, and events of watched nodes.
 */
export class ReplyReader {
  readonly #requests: Requests;
  readonly #watches: Watches;
  readonly #events: ReplyEvents;
  #lastZxid = 0n;
  /** How many requests that restore watches on this connection are unanswered. */
  #restoring = 0;

  constructor(requests: Requests, watches: Watches, events: ReplyEvents) {
    this.#requests = requests;
    this.#watches = watches;
    this.#events = events;
  }

  /** The latest transaction that a server told us of. */
  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  /** So many requests were sent on a new connection to restore the watches. */
  restoring(requests: number): void {
    this.#restoring = requests;
  }

  read(packet: Buffer): void {
    const from = new JuteReader(packet);
    const xid = from.int();
    const zxid = from.long();
    const err = from.int();
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (xid === XIDS.event) {
      this.#event(from);
      return;
    }
    if (xid === XIDS.watches) this.#restoring--;
    if (xid === XIDS.auth && err !== CODES.ok) this.#events.onRefused();
    if (xid >= 0) this.#answer(xid, err, from);
  }

  #event(from: JuteReader): void {
    const type = from.int();
    from.int();
    // This event only confirms that we removed the watch ourselves.
    if (type <= 0 || type >= EVENTS.removed) return;
    // Events from the time without a connection come in the order of watches, not of events.
    const inOrder = this.#restoring === 0;
    const event = type === EVENTS.deleted && inOrder ? "deleted" : "changed";
    this.#watches.fire(from.string(), event);
  }

  #answer(xid: number, err: number, from: JuteReader): void {
    const request = this.#requests.sent(xid);
    if (err === CODES.sessionExpired) {
      this.#events.onExpired();
      return;
    }
    const value = err === CODES.ok ? request.operation.read(from) : null;
    from.end();
    if (!isKnownCode(err)) throw new RangeError(`an answer with the unknown code ${err}`);
    this.#requests.done(xid);
    // A transaction has one error code for each part, other requests have one in all.
    const parts = Array.isArray(value) ? (value as readonly Partial<Part>[]) : [];
    const isAlive = err === CODES.ok && !parts.some((part) => isSessionError(part.err));
    this.#events.onAnswer(request, isAlive);
    request.resolve({ err, value });
  }
}
