import { sleep, systemClock, type Timer } from "../../clock.js";
import { EngineError, HoldfastError, inDoubt } from "../../errors.js";
import { isKept } from "./answers.js";
import { inBatches } from "./batches.js";
import type { Script, Seam, Wait } from "./client.js";
import {
  explain,
  isDoubtful,
  isForbidden,
  isMissingScript,
  isMoving,
  outcomeOf,
  sentTwice,
} from "./failure.js";
import { type Program, programFor } from "./program.js";
import { isListOf, misfit } from "./shape.js";
import { slotOf } from "./slots.js";
import { Vigil } from "./vigil.js";
import { type Asked, type Sent, wordsOf } from "./words.js";

const MANY_WAITING = 512;
const WORTH_HALVING = 16;
// With two calls under way, one is being carried out while we work on the answer to the other. What
// comes meanwhile goes along with the next answer, or after this long where that takes longer.
const ENOUGH_UNDER_WAY = 2;
const HOLD_MS = 1;
// Together as long as a call may take by default: then the caller has given up anyway.
const MOVING_PAUSE_MS = 50;
const MOVING_LOOKS = 100;

interface Operation extends Asked {
  /** When its caller has given up: from then on it is not sent any more. */
  readonly until: number;
  /** once: whether the client cannot have sent it twice by itself. */
  resolve(answer: unknown, once: boolean): void;
  reject(error: unknown): void;
}

/**
 * What a caller is told: what read makes of the answer, or fail of an error; or what they throw. Where
 * it was not sent once, a copy of it may still be on its way.
 */
export interface Reader<T> {
  read(answer: unknown, once: boolean): T;
  fail(error: unknown): T;
}

export interface CommanderTerms {
  readonly idleMs: number;
  /** Where we hear of grants of this key's resource; the same for all keys of a slot. */
  channelOf(key: string): string;
  /** How many replicas must have what was written; null for none. */
  readonly wait: Wait | null;
}

/**
 * Sends operations. Those of one turn of the event loop travel in one call of the script: a client
 * spends more on a command than the server does on an operation. On a Cluster, those of one slot do.
 */
export class Commander {
  readonly #seam: Seam;
  readonly #terms: CommanderTerms;
  readonly #program: Program;
  readonly #inTurn = new Map<number, Operation[]>();
  #waiting: Operation[] = [];
  /** How many calls, and how many operations in them. */
  #underWay = 0;
  #carried = 0;
  #held: Timer | null = null;
  #flushing = false;
  /** Whether the last flush was of one operation: then nothing else is likely to come in this turn. */
  #oneByOne = false;
  readonly #vigil = new Vigil();

  constructor(seam: Seam, terms: CommanderTerms) {
    this.#seam = seam;
    this.#terms = terms;
    this.#program = programFor(terms.idleMs, seam.shards !== undefined);
  }

  /** until: where it waits for its turn for longer than that, it is not sent. */
  run<T>(key: string, words: readonly string[], reader: Reader<T>, until = Infinity): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#add(new Single(key, words, until, reader, resolve, reject));
    });
  }

  /** One that is about many resources goes by itself. Not on a Cluster. */
  runAtOnce(keys: readonly string[], words: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      void this.#send([{ key: keys[0]!, keys, words, until: Infinity, resolve, reject }]);
    });
  }

  #add(operation: Operation): void {
    const nobodyElse = this.#underWay === 0 && this.#waiting.length === 0;
    if (this.#oneByOne && nobodyElse) {
      // At once: what the caller still has to do, it does while this is on its way.
      const slot = this.#seam.shards === undefined ? 0 : slotOf(operation.key);
      this.#sendAll(slot, [operation]);
      this.#vigil.asked();
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
    if (!enough || this.#seam.shards !== undefined || this.#terms.wait !== null) this.#flush();
    else this.#held ??= systemClock.timer(HOLD_MS, () => this.#flush(), true);
  }

  /**
   * Many at once, with an answer or an error for each: cheaper than a promise for each. What is not
   * answered within patienceMs is an error then, and does not keep the others waiting.
   */
  runAll<R>(
    refs: readonly R[],
    ask: (ref: R) => Asked,
    patienceMs: number,
    until = Infinity,
  ): Promise<unknown[]> {
    if (refs.length === 0) return Promise.resolve([]);
    return new Promise((resolve) => {
      const all = new Collection(refs.length, patienceMs, resolve);
      for (let i = 0; i < refs.length; i++) this.#add(new Part(ask(refs[i]!), until, all, i));
    });
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    this.#held?.cancel();
    this.#held = null;
    if (all.length === 0) return;
    this.#oneByOne = all.length === 1;
    const halve = this.#carried <= 1 && all.length >= WORTH_HALVING;
    const later = halve ? all.splice(all.length / 2) : [];
    if (this.#seam.shards === undefined) this.#sendAll(0, all);
    else for (const [slot, group] of bySlot(all)) this.#sendAll(slot, group);
    if (later.length === 0) return;
    // The other half follows when the first is on its way: then the server works on the one while we
    // work on the other.
    setImmediate(() => {
      this.#waiting = later.concat(this.#waiting);
      this.#flush();
    });
  }

  #sendAll(slot: number, group: readonly Operation[]): void {
    if (this.#terms.wait !== null) void this.#sendInTurn(slot, group);
    else for (const batch of batchesOf(group)) void this.#send(batch);
  }

  /** A connection that waits for replicas can do nothing else: what comes meanwhile goes along next. */
  async #sendInTurn(slot: number, group: readonly Operation[]): Promise<void> {
    const line = this.#inTurn.get(slot);
    if (line !== undefined) {
      for (const operation of group) line.push(operation);
      return;
    }
    const own = [...group];
    this.#inTurn.set(slot, own);
    while (own.length > 0) {
      const batch = batchesOf(own)[0]!;
      await this.#send(own.splice(0, batch.length));
      dropLate(own);
    }
    this.#inTurn.delete(slot);
  }

  #send(batch: readonly Operation[]): Promise<void> {
    const channel = this.#terms.channelOf(batch[0]!.key);
    const sent = wordsOf(batch, channel, this.#seam.shards !== undefined);
    const connection = () =>
      this.#seam.connection?.(batch[0]!.key, this.#terms.wait !== null) ?? null;
    const sentBy = connection();
    const isOnce = () => connection() === sentBy;
    this.#underWay++;
    this.#carried += batch.length;
    const settleAll = (answer: unknown) => {
      this.#answered(batch);
      const once = isOnce();
      if (batch.length === 1) settle(batch[0]!, answer, once);
      else if (isListOf(answer, batch.length)) {
        for (let i = 0; i < batch.length; i++) settle(batch[i]!, answer[i], once);
      } else rejectAll(batch, misfit(answer));
    };
    return this.#script(this.#program.bySha, sent).then(settleAll, (error: unknown) =>
      this.#sendAgain(batch, sent, error, isOnce).then(settleAll, (last: unknown) => {
        this.#answered(batch);
        rejectAll(batch, isOnce() ? explain(last) : inDoubt(explain(last)));
      }),
    );
  }

  #answered({ length }: readonly Operation[]): void {
    this.#underWay--;
    this.#carried -= length;
    this.#vigil.answered();
    // After the microtasks that the answers are about to cause.
    if (this.#held !== null) process.nextTick(() => this.#flush());
  }

  /** After a refusal that nothing ran with. Anything else is thrown on. */
  async #sendAgain(
    batch: readonly Operation[],
    sent: Sent,
    refusal: unknown,
    isOnce: () => boolean,
  ): Promise<unknown> {
    const { bySha, inFull } = this.#program;
    let error = refusal;
    for (let looks = 1; looks < MOVING_LOOKS; looks++) {
      // A server that was restarted, failed over or flushed has forgotten the script.
      const forgotten = isMissingScript(error);
      // While a Cluster moves a slot, it refuses what needs keys on both sides.
      if (!forgotten && isMoving(error)) await sleep(systemClock, MOVING_PAUSE_MS, undefined);
      else if (!forgotten) break;
      try {
        return await this.#script(forgotten ? inFull : bySha, sent);
      } catch (next) {
        error = next;
      }
    }
    if (batch.length === 1 || !isForbidden(error) || !isOnce()) throw error;
    // One key that this user may not touch refuses them all.
    return Promise.all(batch.map((operation) => this.#alone(operation)));
  }

  /** The answer to this one alone; what failed is an answer here. */
  #alone({ key, words }: Operation): Promise<unknown> {
    return new Promise((resolve) => {
      void this.#send([{ key, words, until: Infinity, resolve, reject: resolve }]);
    });
  }

  /** Gives the answers; where one alone was asked for, the answer. */
  #script(how: Script, sent: Sent): Promise<unknown> {
    const { wait } = this.#terms;
    if (wait !== null) return this.#confirmed(how, sent, wait);
    try {
      return this.#seam.script(how, sent.keys, sent.args);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #confirmed(how: Script, sent: Sent, wait: Wait): Promise<unknown> {
    const { answer, replicas } = await this.#seam.confirmed(how, sent.keys, sent.args, wait);
    if (replicas >= wait.replicas) return answer;
    const honest = (one: unknown) => (isKept(one) ? unconfirmed(replicas, wait) : one);
    return !sent.alone && Array.isArray(answer) ? answer.map(honest) : honest(answer);
  }
}

/** One whose caller awaits it. */
class Single<T> implements Operation {
  readonly key: string;
  readonly words: readonly string[];
  readonly until: number;
  readonly #reader: Reader<T>;
  readonly #resolve: (told: T) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    key: string,
    words: readonly string[],
    until: number,
    reader: Reader<T>,
    resolve: (told: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.key = key;
    this.words = words;
    this.until = until;
    this.#reader = reader;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  resolve(answer: unknown, once: boolean): void {
    try {
      this.#resolve(this.#reader.read(answer, once));
    } catch (error) {
      this.reject(error);
    }
  }

  reject(error: unknown): void {
    try {
      this.#resolve(this.#reader.fail(error));
    } catch (last) {
      this.#reject(last);
    }
  }
}

const MISSING = Symbol("missing");

/** The answers to many, complete when the last one has come or patience is spent. */
class Collection {
  readonly #answers: unknown[];
  readonly #patience: Timer | null;
  readonly #done: (answers: unknown[]) => void;
  #missing: number;

  constructor(count: number, patienceMs: number, done: (answers: unknown[]) => void) {
    this.#answers = new Array<unknown>(count).fill(MISSING);
    this.#missing = count;
    this.#done = done;
    const giveUp = () => {
      for (let i = 0; i < count; i++) this.take(i, lateness(patienceMs));
    };
    const endless = patienceMs === Infinity;
    this.#patience = endless ? null : systemClock.timer(patienceMs, giveUp, false);
  }

  take(i: number, answer: unknown): void {
    if (this.#answers[i] !== MISSING) return;
    this.#answers[i] = answer;
    if (--this.#missing > 0) return;
    this.#patience?.cancel();
    this.#done(this.#answers);
  }
}

/** One of many. An error is an answer here. */
class Part implements Operation {
  readonly key: string;
  readonly words: readonly string[];
  readonly until: number;
  readonly #whole: Collection;
  readonly #place: number;

  constructor({ key, words }: Asked, until: number, whole: Collection, place: number) {
    this.key = key;
    this.words = words;
    this.until = until;
    this.#whole = whole;
    this.#place = place;
  }

  resolve(answer: unknown): void {
    this.#whole.take(this.#place, answer);
  }

  reject(error: unknown): void {
    this.#whole.take(this.#place, error);
  }
}

/**
 * Takes out those whose callers have given up. While a connection hangs, they would pile up without end,
 * and what is sent when it goes on would find tombstones that are over.
 */
function dropLate(line: Operation[]): void {
  const now = systemClock.now();
  if (!line.some(({ until }) => until <= now)) return;
  for (const operation of line.splice(0)) {
    if (operation.until > now) line.push(operation);
    else operation.reject(unsent());
  }
}

function batchesOf(operations: readonly Operation[]): (readonly Operation[])[] {
  return inBatches(
    operations,
    ({ key }) => key,
    ({ words }) => words[0]!,
  );
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

function unconfirmed(replicas: number, wait: Wait): EngineError {
  return new EngineError(
    `${replicas} of the ${wait.replicas} replicas that must have it answered within ${wait.timeoutMs} ms`,
    { effect: "unknown", retryable: true },
  );
}

function unsent(): EngineError {
  return new EngineError(
    "the connection that waits for replicas was busy: it was not sent in time",
    {
      effect: "none",
      retryable: true,
    },
  );
}

function lateness(patienceMs: number): EngineError {
  const message = `this shard did not answer within ${patienceMs} ms, and others did`;
  return new EngineError(message, { effect: "unknown", retryable: true });
}

function rejectAll(batch: readonly Operation[], reason: HoldfastError): void {
  for (const operation of batch) operation.reject(reason);
}

/** once: whether the client cannot have sent it twice by itself. */
function settle(operation: Operation, answer: unknown, once: boolean): void {
  const outcome =
    once || !isDoubtful(operation.words[0]!, answer) ? outcomeOf(answer) : sentTwice();
  if (!(outcome instanceof HoldfastError)) operation.resolve(outcome, once);
  else operation.reject(once ? outcome : inDoubt(outcome));
}
