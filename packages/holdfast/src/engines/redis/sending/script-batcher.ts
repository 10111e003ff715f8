import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { RedisConnection } from "../clients/connection.js";
import type { EncodedOperation } from "../protocol/encode.js";
import { slotOf } from "../protocol/slots.js";
import { AdaptiveSpin } from "./adaptive-spin.js";
import { batchesOf } from "./batches.js";
import { CallQueue } from "./call-queue.js";
import {
  AnswerCollector,
  type AnswerReader,
  CollectedOperation,
  type Operation,
} from "./operation.js";
import { type CallTerms, ScriptCaller, type ScriptListener } from "./script-caller.js";

const MANY_WAITING = 512;
// With two calls in progress, the server runs one while we process the answer to the other. New
// operations are held until the next answer, but no longer than HOLD_MS.
const ENOUGH_IN_PROGRESS = 2;
const HOLD_MS = 1;

export interface BatcherTerms extends CallTerms {
  /** Whether the event loop may spin until an answer comes. */
  readonly spin: boolean;
}

/**
 * Decides when operations are sent, and which are sent together. Operations of one turn of the
 * event loop travel in one call of the script, because a command costs the client more than an
 * operation costs the server. On a Cluster, each slot has calls of its own.
 */
export class ScriptBatcher implements ScriptListener {
  readonly #isCluster: boolean;
  readonly #caller: ScriptCaller;
  /** Used where replicas must confirm each call; otherwise null. */
  readonly #queue: CallQueue | null;
  /** null if spinning is turned off. */
  readonly #spin: AdaptiveSpin | null;
  #waiting: Operation[] = [];
  #callsInProgress = 0;
  #held: Timer | null = null;
  #flushing = false;
  /**
   * Whether the last flush had one operation. Then no other operation is likely to come in this
   * turn.
   */
  #lastWasSingle = false;
  #isClosed = false;

  constructor(connection: RedisConnection, terms: BatcherTerms) {
    this.#isCluster = connection.shards !== undefined;
    this.#caller = new ScriptCaller(connection, terms, this);
    this.#queue = terms.wait === null ? null : new CallQueue(this.#caller);
    this.#spin = terms.spin ? new AdaptiveSpin() : null;
  }

  /** Whether an answer counts only once replicas have confirmed it. */
  get confirms(): boolean {
    return this.#queue !== null;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** From now on, every operation is refused. */
  close(): void {
    this.#isClosed = true;
  }

  /** An operation that waits in the CallQueue for longer than timeoutMs is not sent. */
  run<T>(
    key: string,
    words: readonly string[],
    reader: AnswerReader<T>,
    timeoutMs = Infinity,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closed());
      const fail = (error: unknown) => {
        if (reader.fail === undefined) return reject(error);
        try {
          resolve(reader.fail(error));
        } catch (last) {
          reject(last);
        }
      };
      const read = (answer: unknown, once: boolean) => {
        try {
          resolve(reader.read(answer, once));
        } catch (error) {
          fail(error);
        }
      };
      this.#add({ key, words, until: this.#until(timeoutMs), resolve: read, reject: fail });
    });
  }

  /** Sends an operation about many resources at once and alone. Not for a Cluster. */
  runAtOnce(keys: readonly string[], words: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closed());
      void this.#caller.send([{ key: keys[0]!, keys, words, until: Infinity, resolve, reject }]);
    });
  }

  /**
   * Runs many operations, and gives an answer or an error for each. Cheaper than a promise for
   * each.
   */
  runAll<R>(
    refs: readonly R[],
    ask: (ref: R) => EncodedOperation,
    timeoutMs: number,
  ): Promise<unknown[]> {
    if (this.#isClosed) return Promise.reject(closed());
    if (refs.length === 0) return Promise.resolve([]);
    // If a shard hangs, the core must get the answers of the other shards before its own deadline.
    const collectMs = this.#isCluster ? timeoutMs / 2 : Infinity;
    const until = this.#until(timeoutMs);
    return new Promise((resolve) => {
      const all = new AnswerCollector(refs.length, collectMs, resolve);
      for (let i = 0; i < refs.length; i++) {
        this.#add(new CollectedOperation(ask(refs[i]!), until, all, i));
      }
    });
  }

  onSent(): void {
    this.#callsInProgress++;
  }

  onAnswered(): void {
    this.#callsInProgress--;
    this.#spin?.onAnswer();
    // Not before the microtasks that these answers cause: they may add operations.
    if (this.#held !== null) process.nextTick(() => this.#flush());
  }

  /**
   * Only a CallQueue delays operations so much that it must drop those whose callers have given up.
   */
  #until(timeoutMs: number): number {
    return this.#queue === null ? Infinity : systemClock.now() + timeoutMs;
  }

  #add(operation: Operation): void {
    const isIdle = this.#callsInProgress === 0 && this.#waiting.length === 0;
    if (this.#lastWasSingle && isIdle) {
      // Sent at once: the caller does the rest of its work while this operation travels.
      this.#send(this.#isCluster ? slotOf(operation.key) : 0, [operation]);
      this.#spin?.onRequest();
      return;
    }
    this.#waiting.push(operation);
    if (this.#flushing) return;
    this.#flushing = true;
    // After the pending microtasks, so that operations of this turn travel together.
    process.nextTick(() => this.#flushSoon());
  }

  #flushSoon(): void {
    this.#flushing = false;
    const enough =
      this.#callsInProgress >= ENOUGH_IN_PROGRESS && this.#waiting.length < MANY_WAITING;
    // On a Cluster a shard that hangs must not delay the others, and a CallQueue sends in turn
    // anyway.
    if (!enough || this.#isCluster || this.#queue !== null) this.#flush();
    else this.#held ??= systemClock.timer(HOLD_MS, () => this.#flush(), true);
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    this.#held?.cancel();
    this.#held = null;
    if (all.length === 0) return;
    this.#lastWasSingle = all.length === 1;
    if (!this.#isCluster) this.#send(0, all);
    else for (const [slot, group] of bySlot(all)) this.#send(slot, group);
  }

  #send(slot: number, group: readonly Operation[]): void {
    if (this.#queue !== null) void this.#queue.send(slot, group);
    else for (const batch of batchesOf(group)) void this.#caller.send(batch);
  }
}

export function closed(): EngineError {
  return new EngineError("the redis engine was closed", { effect: "none", retryable: false });
}

function bySlot(operations: readonly Operation[]): Map<number, Operation[]> {
  const groups = new Map<number, Operation[]>();
  for (const operation of operations) {
    const slot = slotOf(operation.key);
    const group = groups.get(slot);
    if (group === undefined) groups.set(slot, [operation]);
    else group.push(operation);
  }
  return groups;
}
