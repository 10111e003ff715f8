import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { emit } from "../../../events.js";
import type { Host } from "../../../url.js";
import { Connection, type TlsOptions } from "./connection.js";
import { JuteReader } from "./jute.js";
import {
  authenticate,
  CODES,
  closeSession,
  getData,
  isKnownCode,
  isSessionError,
  type Node,
  type Operation,
  type Part,
  readWelcome,
  removeWatches,
  setWatches,
  vouch,
  writeHello,
  writeRequest,
} from "./operations.js";
import { Proof } from "./proof.js";
import { type Answer, notSent, type Request, Requests } from "./requests.js";
import { ServerRotation } from "./server-rotation.js";
import { Silence } from "./silence.js";
import { Watches, type WatchListener } from "./watches.js";

const XIDS = { event: -1, ping: -2, auth: -4, watches: -8 } as const;
const EVENTS = { deleted: 2, removed: 5 } as const;
const CLOSE_MS = 500;
// A third of the timeout leaves time to go to another server while a lease is still valid.
const SILENT_FOR = 1 / 3;
// After this many timeouts without an answer, no server can know the session any more.
const GIVEN_UP_AFTER = 2;
// After this part of its life without proof, a new lease on the session would start too short.
const STALE = 1 / 2;

export interface SessionSpec {
  readonly hosts: readonly Host[];
  readonly timeoutMs: number;
  readonly tls: TlsOptions | null;
  /** "user:password" */
  readonly digest: string | null;
}

/** One session with the ensemble. It outlives its connections, and ends when the servers say so. */
export class Session {
  readonly #spec: SessionSpec;
  readonly #onEnd: (why: "expired" | "refused") => void;
  readonly #watches = new Watches();
  readonly #requests = new Requests(() => this.#lastFailure);
  readonly #silence = new Silence(this.#requests, (silentMs) => this.#hangUp(silentMs));
  #proof: Proof;
  #timeoutMs: number;
  #sessionId = 0n;
  #password: Buffer = Buffer.alloc(16);
  #lastZxid = 0n;
  #connection: Connection | null = null;
  #state: "joining" | "open" | "over" = "joining";
  #why: EngineError | null = null;
  #expired = false;
  /** How many requests that restore watches on this connection are unanswered. */
  #catchingUp = 0;
  readonly #rotation: ServerRotation;
  #helloSentAt = 0;
  #heardAt = 0;
  #keptAt = 0;
  #timer: Timer | null = null;
  #opened!: () => void;
  #lastFailure: Error | null = null;
  readonly opened: Promise<void>;

  constructor(spec: SessionSpec, onEnd: (why: "expired" | "refused") => void) {
    this.#spec = spec;
    this.#onEnd = onEnd;
    this.#proof = new Proof(spec.timeoutMs);
    this.#timeoutMs = spec.timeoutMs;
    this.#rotation = new ServerRotation(spec.hosts);
    this.opened = new Promise((resolve) => {
      this.#opened = resolve;
    });
    this.#join();
  }

  get over(): boolean {
    return this.#state === "over";
  }

  /** Whether the servers have ended the session and its nodes, even if we were not told. */
  get expired(): boolean {
    return this.#expired;
  }

  /** No later than the instant from which the leader counts the timeout; on systemClock. */
  get since(): number {
    return this.#proof.since;
  }

  /** How long after `since` the nodes of the session certainly exist. */
  get leaseMs(): number {
    return this.#proof.leaseMs;
  }

  get watched(): number {
    return this.#watches.size;
  }

  get lastFailure(): Error | null {
    return this.#lastFailure;
  }

  /** Waits for a connection if there is none. A request that is not sent before `until` is never sent. */
  ask<T>(operation: Operation<T>, until: number): Promise<Answer<T>> {
    return new Promise((resolve, reject) => {
      const settle = resolve as (answer: Answer<unknown>) => void;
      const request: Request = { operation, until, resolve: settle, reject, sentAt: 0 };
      if (this.#why !== null) reject(this.#why);
      else if (this.#state === "open") this.#send(request);
      else this.#requests.wait(request);
    });
  }

  /** Reads a node and calls the listener once, when it is changed or deleted. Never if there is no node. */
  async watch(path: string, until: number, listener: WatchListener): Promise<Answer<Node>> {
    // Added before the request is sent: the event may arrive together with the answer.
    this.#watches.add(path, listener);
    try {
      const answer = await this.ask(getData(path, true), until);
      if (answer.err !== CODES.ok) this.#watches.drop(path, listener);
      return answer;
    } catch (error) {
      this.#watches.drop(path, listener);
      throw error;
    }
  }

  unwatch(path: string, listener: WatchListener): void {
    if (!this.#watches.drop(path, listener) || this.#state !== "open") return;
    const until = systemClock.now() + this.#timeoutMs;
    // Otherwise the server would keep the watch for as long as the node lives. A failure is harmless.
    this.ask(removeWatches(path), until).catch(() => {});
  }

  /**
   * Called before a node is made that must live its whole time. If this process was suspended for long, the
   * leader may be about to end the session: a follower that hears from us again tells the leader later, or
   * never. With a new connection the leader is told at once.
   */
  refresh(): void {
    if (this.#state !== "open") return;
    const oldMs = systemClock.now() - Math.max(this.since, this.#helloSentAt);
    if (oldMs <= this.leaseMs * STALE) return;
    this.#connection!.end(new Error(`not kept alive for ${Math.round(oldMs)} ms`));
  }

  /** Ends the session at the servers, and with it all its nodes. */
  async close(): Promise<void> {
    if (this.#state === "open") {
      const until = systemClock.now() + CLOSE_MS;
      const closing = this.ask(closeSession(), until).catch(() => {});
      let timer: Timer | undefined;
      const late = new Promise<void>((resolve) => {
        timer = systemClock.timer(CLOSE_MS, resolve, true);
      });
      await Promise.race([closing, late]);
      timer?.cancel();
    }
    this.#finish(notSent("the session was closed", null));
  }

  #join(): void {
    if (this.#state === "over") return;
    this.#state = "joining";
    const { timeoutMs, tls } = this.#spec;
    this.#helloSentAt = systemClock.now();
    let connection: Connection;
    const events = {
      onPacket: (packet: Buffer) => this.#take(packet),
      onEnd: (error: Error) => this.#lost(connection, error),
    };
    const hello = writeHello({
      ...{ sessionId: this.#sessionId, password: this.#password },
      ...{ lastZxid: this.#lastZxid, timeoutMs },
    });
    connection = new Connection(this.#rotation.next(), tls, hello, events);
    this.#connection = connection;
    const attemptMs = this.#rotation.attemptMs(this.#timeoutMs);
    const late = () => connection.end(new Error(`no answer within ${Math.round(attemptMs)} ms`));
    this.#arm(attemptMs, late);
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#connection !== connection || this.#state === "over") return;
    this.#connection = null;
    this.#silence.end();
    this.#lastFailure = error;
    emit("failed", () => ({ during: "connection", error }));
    this.#state = "joining";
    this.#requests.failSent(error);
    this.#requests.dropLate();
    if (this.#isHopeless()) {
      this.#end("expired", notSent("the session was not taken up again in time", error));
      return;
    }
    this.#arm(this.#rotation.pauseMs(this.#timeoutMs), () => this.#join());
  }

  /** A server that lost its data refuses clients that have seen more than it has, and never says why. */
  #isHopeless(): boolean {
    const silentMs = systemClock.now() - this.#heardAt;
    return this.#sessionId !== 0n && silentMs > this.#timeoutMs * GIVEN_UP_AFTER;
  }

  #take(packet: Buffer): void {
    this.#heardAt = systemClock.now();
    this.#silence.heard(this.#heardAt);
    if (this.#state === "joining") this.#welcome(packet);
    else if (this.#state === "open") this.#hear(new JuteReader(packet));
  }

  #welcome(packet: Buffer): void {
    const { timeoutMs, sessionId, password } = readWelcome(packet);
    if (timeoutMs <= 0) {
      this.#expire();
      return;
    }
    const isNew = this.#sessionId === 0n;
    // The servers may grant another timeout than the one that was asked for.
    if (timeoutMs !== this.#timeoutMs || isNew) this.#proof = new Proof(timeoutMs);
    this.#timeoutMs = timeoutMs;
    this.#sessionId = sessionId;
    this.#password = password;
    this.#proof.opened(this.#helloSentAt, isNew);
    this.#state = "open";
    this.#rotation.welcomed();
    this.#keptAt = this.#heardAt;
    if (this.#spec.digest !== null) {
      const sent = authenticate("digest", Buffer.from(this.#spec.digest));
      this.#connection!.send(writeRequest(XIDS.auth, sent));
    }
    this.#catchingUp = 0;
    for (const paths of this.#watches.batches()) {
      this.#catchingUp++;
      this.#connection!.send(writeRequest(XIDS.watches, setWatches(this.#lastZxid, paths)));
    }
    this.#requests.dropLate();
    for (const request of this.#requests.takeWaiting()) this.#send(request);
    if (isNew) this.#arm(this.#proof.keepEveryMs, () => this.#keep());
    else this.#keep();
    this.#opened();
  }

  #hear(from: JuteReader): void {
    const xid = from.int();
    const zxid = from.long();
    const err = from.int();
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (xid === XIDS.event) {
      this.#happened(from);
      return;
    }
    if (xid === XIDS.watches) this.#catchingUp--;
    if (xid === XIDS.auth && err !== CODES.ok) {
      const why = "ZooKeeper does not accept these credentials";
      const details = { effect: "none", retryable: false, reason: "credentials" } as const;
      this.#end("refused", new EngineError(why, details));
    }
    if (xid >= 0) this.#settle(xid, err, from);
  }

  #happened(from: JuteReader): void {
    const type = from.int();
    from.int();
    // This event only confirms that we removed the watch ourselves.
    if (type <= 0 || type >= EVENTS.removed) return;
    // Events from the time without a connection come in the order of watches, not of events.
    const inOrder = this.#catchingUp === 0;
    const event = type === EVENTS.deleted && inOrder ? "deleted" : "changed";
    this.#watches.fire(from.string(), event);
  }

  #settle(xid: number, err: number, from: JuteReader): void {
    const request = this.#requests.sent(xid);
    if (err === CODES.sessionExpired) {
      this.#expire();
      return;
    }
    const value = err === CODES.ok ? request.operation.read(from) : null;
    from.end();
    if (!isKnownCode(err)) throw new RangeError(`an answer with the unknown code ${err}`);
    this.#requests.done(xid);
    // A transaction has one error code for each part, other requests have one in all.
    const errors = Array.isArray(value) ? (value as readonly Partial<Part>[]) : [];
    const isProof = err === CODES.ok && !errors.some((part) => isSessionError(part.err));
    const { byMajority } = request.operation;
    this.#proof.answered(request.sentAt, this.#heardAt, byMajority && isProof);
    request.resolve({ err, value });
  }

  #send(request: Request): void {
    const xid = this.#requests.send(request);
    this.#connection!.send(writeRequest(xid, request.operation));
    this.#silence.sent(request.until);
  }

  /** Sends keepalives, and notices a server that does not answer them. */
  #keep(): void {
    const now = systemClock.now();
    const mostMs = this.#timeoutMs * SILENT_FOR;
    // If this process was suspended, the answers have arrived but are not read yet.
    if (now - this.#keptAt > mostMs) this.#heardAt = now;
    this.#keptAt = now;
    const { oldest } = this.#requests;
    const silentMs = oldest === undefined ? 0 : now - Math.max(this.#heardAt, oldest.sentAt);
    if (silentMs > mostMs) {
      this.#hangUp(silentMs);
      return;
    }
    this.ask(vouch("/"), now + mostMs).catch(() => {});
    this.#arm(this.#proof.keepEveryMs, () => this.#keep());
  }

  #hangUp(silentMs: number): void {
    this.#connection?.end(new Error(`no answer within ${Math.round(silentMs)} ms`));
  }

  #expire(): void {
    this.#expired = true;
    const why = "the ZooKeeper session has expired";
    this.#end("expired", new EngineError(why, { effect: "none", retryable: true }));
  }

  #end(how: "expired" | "refused", error: EngineError): void {
    this.#finish(error);
    this.#onEnd(how);
    this.#watches.fireAll();
  }

  #finish(why: EngineError): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#why = why;
    this.#timer?.cancel();
    this.#silence.end();
    this.#connection?.end(why);
    this.#requests.failSent(why);
    this.#requests.failWaiting(why);
    this.#opened();
  }

  #arm(delayMs: number, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = systemClock.timer(delayMs, callback, false);
  }
}
