import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { emit } from "../../../events.js";
import type { Host } from "../../../url.js";
import { CODES } from "./codes.js";
import type { TlsOptions } from "./connection.js";
import { Connector } from "./connector.js";
import { HangDetector } from "./hang-detector.js";
import { readWelcome, type Welcome, writeHello } from "./hello.js";
import { Keepalive } from "./keepalive.js";
import { noop } from "./multi.js";
import {
  authenticate,
  closeSession,
  getData,
  type Node,
  type Operation,
  removeWatches,
  setWatches,
  writeRequest,
} from "./operations.js";
import { Proof } from "./proof.js";
import { ReplyReader, XIDS } from "./reply-reader.js";
import { type Answer, notSent, type Request, Requests } from "./requests.js";
import { Watches, type WatchListener } from "./watches.js";

const CLOSE_MS = 500;
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
  readonly #hangDetector = new HangDetector(this.#requests, (silentMs) => this.#hangUp(silentMs));
  readonly #keepalive = new Keepalive(this.#requests, {
    send: (until) => void this.ask(noop("/"), until).catch(() => {}),
    onSilence: (silentMs) => this.#hangUp(silentMs),
  });
  readonly #replies = new ReplyReader(this.#requests, this.#watches, {
    onAnswer: (request, isAlive) => this.#answered(request, isAlive),
    onExpired: () => this.#expire(),
    onRefused: () => this.#refuse(),
  });
  #proof: Proof;
  /** What the servers granted; session 0 before they did. */
  #granted: Welcome;
  #state: "joining" | "open" | "over" = "joining";
  #why: EngineError | null = null;
  #expired = false;
  readonly #connector: Connector;
  #opened!: () => void;
  #lastFailure: Error | null = null;
  readonly opened: Promise<void>;

  constructor(spec: SessionSpec, onEnd: (why: "expired" | "refused") => void) {
    this.#spec = spec;
    this.#onEnd = onEnd;
    this.#proof = new Proof(spec.timeoutMs);
    this.#granted = { timeoutMs: spec.timeoutMs, sessionId: 0n, password: Buffer.alloc(16) };
    this.#connector = new Connector(spec.hosts, spec.tls, {
      hello: () => this.#hello(),
      onPacket: (packet) => this.#take(packet),
      onLost: (error) => this.#lost(error),
    });
    this.opened = new Promise((resolve) => {
      this.#opened = resolve;
    });
    this.#connector.connect(spec.timeoutMs);
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

  /**
   * Waits for a connection if there is none. A request that is not sent before `until` is never
   * sent.
   */
  ask<T>(operation: Operation<T>, until: number): Promise<Answer<T>> {
    return new Promise((resolve, reject) => {
      const settle = resolve as (answer: Answer<unknown>) => void;
      const request: Request = { operation, until, resolve: settle, reject, sentAt: 0 };
      if (this.#why !== null) reject(this.#why);
      else if (this.#state === "open") this.#send(request);
      else this.#requests.wait(request);
    });
  }

  /**
   * Reads a node and calls the listener once, when it is changed or deleted. Never if there is no
   * node.
   */
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
    const until = systemClock.now() + this.#granted.timeoutMs;
    // Otherwise the server would keep the watch for as long as the node lives. A failure is
    // harmless.
    this.ask(removeWatches(path), until).catch(() => {});
  }

  /**
   * Called before a node is made that must live its whole time. If this process was suspended for
   * long, the leader may be about to end the session: a follower that hears from us again tells the
   * leader later, or never. With a new connection the leader is told at once.
   */
  refresh(): void {
    if (this.#state !== "open") return;
    const oldMs = systemClock.now() - Math.max(this.since, this.#connector.helloSentAt);
    if (oldMs <= this.leaseMs * STALE) return;
    this.#connector.connection!.end(new Error(`not kept alive for ${Math.round(oldMs)} ms`));
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

  #hello(): Buffer {
    const { timeoutMs } = this.#spec;
    const { lastZxid } = this.#replies;
    return writeHello({ ...this.#granted, timeoutMs, lastZxid });
  }

  #lost(error: Error): void {
    if (this.#state === "over") return;
    this.#hangDetector.end();
    this.#keepalive.stop();
    this.#lastFailure = error;
    emit("failed", () => ({ during: "connection", error }));
    this.#state = "joining";
    this.#requests.failSent(error);
    this.#requests.dropLate();
    if (this.#isHopeless()) {
      this.#end("expired", notSent("the session was not taken up again in time", error));
      return;
    }
    this.#connector.reconnect(this.#granted.timeoutMs);
  }

  /**
   * A server that lost its data refuses clients that have seen more than it has, and never says
   * why.
   */
  #isHopeless(): boolean {
    const { sessionId, timeoutMs } = this.#granted;
    const silentMs = systemClock.now() - this.#keepalive.heardAt;
    return sessionId !== 0n && silentMs > timeoutMs * GIVEN_UP_AFTER;
  }

  #take(packet: Buffer): void {
    const now = systemClock.now();
    this.#keepalive.heard(now);
    this.#hangDetector.heard(now);
    if (this.#state === "joining") this.#welcome(packet);
    else if (this.#state === "open") this.#replies.read(packet);
  }

  #welcome(packet: Buffer): void {
    const granted = readWelcome(packet);
    const { timeoutMs } = granted;
    if (timeoutMs <= 0) {
      this.#expire();
      return;
    }
    const isNew = this.#granted.sessionId === 0n;
    // The servers may grant another timeout than the one that was asked for.
    if (timeoutMs !== this.#granted.timeoutMs || isNew) this.#proof = new Proof(timeoutMs);
    this.#granted = granted;
    this.#proof.opened(this.#connector.helloSentAt, isNew);
    this.#state = "open";
    this.#connector.welcomed();
    if (this.#spec.digest !== null) {
      const sent = authenticate("digest", Buffer.from(this.#spec.digest));
      this.#connector.connection!.send(writeRequest(XIDS.auth, sent));
    }
    const batches = [...this.#watches.batches()];
    this.#replies.restoring(batches.length);
    for (const paths of batches) {
      const watches = setWatches(this.#replies.lastZxid, paths);
      this.#connector.connection!.send(writeRequest(XIDS.watches, watches));
    }
    this.#requests.dropLate();
    for (const request of this.#requests.takeWaiting()) this.#send(request);
    this.#keepalive.start(timeoutMs, this.#proof.keepEveryMs, !isNew);
    this.#opened();
  }

  #answered({ operation, sentAt }: Request, isAlive: boolean): void {
    this.#proof.answered(sentAt, this.#keepalive.heardAt, operation.byMajority && isAlive);
  }

  #send(request: Request): void {
    const xid = this.#requests.send(request);
    this.#connector.connection!.send(writeRequest(xid, request.operation));
    this.#hangDetector.sent(request.until);
  }

  #hangUp(silentMs: number): void {
    this.#connector.connection?.end(new Error(`no answer within ${Math.round(silentMs)} ms`));
  }

  #expire(): void {
    this.#expired = true;
    const why = "the ZooKeeper session has expired";
    this.#end("expired", new EngineError(why, { effect: "none", retryable: true }));
  }

  #refuse(): void {
    const why = "ZooKeeper does not accept these credentials";
    const details = { effect: "none", retryable: false, reason: "credentials" } as const;
    this.#end("refused", new EngineError(why, details));
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
    this.#hangDetector.end();
    this.#keepalive.stop();
    this.#connector.close(why);
    this.#requests.failSent(why);
    this.#requests.failWaiting(why);
    this.#opened();
  }
}
