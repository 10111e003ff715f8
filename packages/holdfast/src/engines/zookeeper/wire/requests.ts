import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Operation } from "./operations.js";

const MOST_WAITING = 20_000;
const LARGEST_XID = 0x7fff_ffff;

export interface Answer<T> {
  readonly err: number;
  /** Null if there is an error. */
  readonly value: T | null;
}

export interface Request {
  readonly operation: Operation<unknown>;
  readonly until: number;
  readonly resolve: (answer: Answer<unknown>) => void;
  readonly reject: (error: EngineError) => void;
  sentAt: number;
}

/** Unanswered requests: sent ones by their number, and ones that wait for a connection. */
export class Requests {
  readonly #inFlight = new Map<number, Request>();
  readonly #lastFailure: () => Error | null;
  #waiting: Request[] = [];
  #lateAt = Infinity;
  #late: Timer | null = null;
  #xid = 0;

  /** lastFailure: why there is no connection, if that is known. */
  constructor(lastFailure: () => Error | null) {
    this.#lastFailure = lastFailure;
  }

  /** The request that was sent first. */
  get oldest(): Request | undefined {
    const [oldest] = this.#inFlight.values();
    return oldest;
  }

  get underWay(): Iterable<Request> {
    return this.#inFlight.values();
  }

  /** Returns the number of the request. From now on its answer is expected. */
  send(request: Request): number {
    this.#xid = this.#xid === LARGEST_XID ? 1 : this.#xid + 1;
    request.sentAt = systemClock.now();
    this.#inFlight.set(this.#xid, request);
    return this.#xid;
  }

  /** The request that an answer belongs to. */
  sent(xid: number): Request {
    const request = this.#inFlight.get(xid);
    if (request === undefined) throw new RangeError(`an answer to request ${xid}, never sent`);
    return request;
  }

  done(xid: number): void {
    this.#inFlight.delete(xid);
  }

  wait(request: Request): void {
    if (this.#waiting.length >= MOST_WAITING) {
      request.reject(notSent("too many requests wait for a connection", this.#lastFailure()));
      return;
    }
    this.#waiting.push(request);
    this.#awaitLate(request.until);
  }

  /** Takes all waiting requests, because there is a connection now. */
  takeWaiting(): readonly Request[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#endLate();
    return waiting;
  }

  /**
   * The connection is gone, so sent requests get no answer. Reads are sent again on the next
   * connection, if there is time.
   */
  failSent(cause: Error): void {
    const requests = [...this.#inFlight.values()];
    this.#inFlight.clear();
    const now = systemClock.now();
    for (const request of requests) {
      const { operation, until, reject } = request;
      if (readsOnly(operation, cause) && until > now) this.wait(request);
      else reject(unanswered(operation, cause));
    }
  }

  failWaiting(why: EngineError): void {
    for (const { reject } of this.takeWaiting()) reject(why);
  }

  /** Drops requests whose time is over: they are never sent. */
  dropLate(): void {
    this.#endLate();
    const now = systemClock.now();
    const late = this.#waiting.filter(({ until }) => until <= now);
    if (late.length > 0) this.#waiting = this.#waiting.filter(({ until }) => until > now);
    const next = this.#waiting.reduce((least, { until }) => Math.min(least, until), Infinity);
    if (next < Infinity) this.#awaitLate(next);
    for (const { reject } of late) reject(notSent("no connection in time", this.#lastFailure()));
  }

  /** Fails waiting requests when their time is over: later nobody listens to the reason. */
  #awaitLate(until: number): void {
    if (until >= this.#lateAt) return;
    this.#endLate();
    this.#lateAt = until;
    const inMs = Math.max(0, until - systemClock.now());
    this.#late = systemClock.timer(inMs, () => this.dropLate(), false);
  }

  #endLate(): void {
    this.#late?.cancel();
    this.#late = null;
    this.#lateAt = Infinity;
  }
}

/**
 * A read has no effect, answered or not. But if the answers of a server are malformed (the
 * connection ended with a RangeError), nothing is known about it.
 */
function readsOnly({ writes }: Operation<unknown>, cause: Error): boolean {
  return !(cause instanceof RangeError) && !writes;
}

function unanswered(operation: Operation<unknown>, cause: Error): EngineError {
  return new EngineError(`ZooKeeper did not answer: ${cause.message}`, {
    effect: readsOnly(operation, cause) ? "none" : "unknown",
    ...{ retryable: true, reason: "unreachable", cause },
  });
}

export function notSent(why: string, cause: Error | null): EngineError {
  const message = cause === null ? why : `${why}: ${cause.message}`;
  const details = cause === null ? {} : { cause };
  return new EngineError(`ZooKeeper was not asked: ${message}`, {
    ...{ effect: "none", retryable: true, reason: "unreachable" },
    ...details,
  });
}
