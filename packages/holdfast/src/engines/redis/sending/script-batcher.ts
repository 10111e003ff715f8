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
import { type CallListener, type CallTerms, ScriptCaller } from "./script-caller.js";

const MANY_WAITING = 512;
// With two calls under way, one is being carried out while we work on the answer to the other. What
// comes meanwhile goes along with the next answer, or after this long where that takes longer.
const ENOUGH_UNDER_WAY = 2;
const HOLD_MS = 1;

export interface BatcherTerms extends CallTerms {
  /** Whether the event loop may spin until an answer comes. */
  readonly spin: boolean;
}

/**
 * Decides when operations are sent, and together with which. Those of one turn of the event loop travel
 * in one call of the script: a client spends more on a command than the server does on an operation. On
 * a Cluster, those of one slot do.
 */
export class ScriptBatcher implements CallListener {
  readonly #isCluster: boolean;
  readonly #caller: ScriptCaller;
  /** Where replicas must confirm each call; null where none need to. */
  readonly #queue: CallQueue | null;
  /** null where it is turned off. */
  readonly #spin: AdaptiveSpin | null;
  #waiting: Operation[] = [];
  /** How many calls. */
  #underWay = 0;
  #held: Timer | null = null;
  #flushing = false;
  /** Whether the last flush was of one operation: then nothing else is likely to come in this turn. */
  #oneByOne = false;
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

  /** Where it waits for its turn for longer than timeoutMs, it is not sent. */
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

  /** One that is about many resources goes by itself. Not on a Cluster. */
  runAtOnce(keys: readonly string[], words: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) return reject(closed());
      void this.#caller.send([{ key: keys[0]!, keys, words, until: Infinity, resolve, reject }]);
    });
  }

  /** Many at once, with an answer or an error for each: cheaper than a promise for each. */
  runAll<R>(
    refs: readonly R[],
    ask: (ref: R) => EncodedOperation,
    timeoutMs: number,
  ): Promise<unknown[]> {
    if (this.#isClosed) return Promise.reject(closed());
    if (refs.length === 0) return Promise.resolve([]);
    // A shard that hangs must leave the core time to hear what the others said.
    const collectMs = this.#isCluster ? timeoutMs / 2 : Infinity;
    const until = this.#until(timeoutMs);
    return new Promise((resolve) => {
      const all = new AnswerCollector(refs.length, collectMs, resolve);
      for (let i = 0; i < refs.length; i++)
        this.#add(new CollectedOperation(ask(refs[i]!), until, all, i));
    });
  }

  onSent(): void {
    this.#underWay++;
  }

  onAnswered(): void {
    this.#underWay--;
    this.#spin?.answered();
    // After the microtasks that the answers are about to cause.
    if (this.#held !== null) process.nextTick(() => this.#flush());
  }

  /** Only where calls wait for their turn is one that nobody waits for any more not sent. */
  #until(timeoutMs: number): number {
    return this.#queue === null ? Infinity : systemClock.now() + timeoutMs;
  }

  #add(operation: Operation): void {
    const nobodyElse = this.#underWay === 0 && this.#waiting.length === 0;
    if (this.#oneByOne && nobodyElse) {
      // At once: what the caller still has to do, it does while this is on its way.
      this.#send(this.#isCluster ? slotOf(operation.key) : 0, [operation]);
      this.#spin?.asked();
      return;
    }
    this.#waiting.push(operation);
    if (this.#flushing) return;
    this.#flushing = true;
    // After the microtasks that are due: whoever asks in this turn goes along.
    process.nextTick(() => this.#flushSoon());
  }

  #flushSoon(): void {
    this.#flushing = false;
    const enough = this.#underWay >= ENOUGH_UNDER_WAY && this.#waiting.length < MANY_WAITING;
    // A shard that hangs must not hold up the others, and who waits for replicas sends in turn anyway.
    if (!enough || this.#isCluster || this.#queue !== null) this.#flush();
    else this.#held ??= systemClock.timer(HOLD_MS, () => this.#flush(), true);
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    this.#held?.cancel();
    this.#held = null;
    if (all.length === 0) return;
    this.#oneByOne = all.length === 1;
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
