import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError, HoldfastError, inDoubt } from "../../../errors.js";
import type { RedisConnection, ReplicaWait, ScriptRef } from "../clients/connection.js";
import { mustReachReplicas } from "../protocol/decode.js";
import { encodeBatch, type ScriptArguments } from "../protocol/encode.js";
import {
  explain,
  isForbidden,
  isMissingScript,
  isMoving,
  mayBeFromCopy,
  outcomeOf,
  perhapsSentTwice,
} from "../protocol/failure.js";
import { type Script, scriptFor } from "../protocol/script.js";
import { isListOf, unexpectedAnswer } from "../protocol/shape.js";
import type { Operation } from "./operation.js";

// All pauses together take as long as a call may take by default. By then the caller has given up.
const MOVING_PAUSE_MS = 50;
const MOVING_LOOKS = 100;

export interface CallTerms {
  readonly idleMs: number;
  /** The channel for grants of this key's resource; the same for all keys of a slot. */
  channelOf(key: string): string;
  /** How many replicas must have the writes; null if none must. */
  readonly wait: ReplicaWait | null;
}

/** Hears of every call; of its answer, before the operations in it get theirs. */
export interface ScriptListener {
  onSent(): void;
  onAnswered(): void;
}

/**
 * Calls the script for a batch, and gives each operation its answer. Repeats a call that the server
 * refused before anything ran. Tells each operation whether the client may have sent it twice.
 */
export class ScriptCaller {
  readonly #connection: RedisConnection;
  readonly #terms: CallTerms;
  readonly #listener: ScriptListener;
  readonly #script: Script;

  constructor(connection: RedisConnection, terms: CallTerms, listener: ScriptListener) {
    this.#connection = connection;
    this.#terms = terms;
    this.#listener = listener;
    this.#script = scriptFor(terms.idleMs, connection.shards !== undefined);
  }

  /** Resolves when all operations have their answers; never rejects. */
  send(batch: readonly Operation[]): Promise<void> {
    const { key } = batch[0]!;
    const sent = encodeBatch(
      batch,
      this.#terms.channelOf(key),
      this.#connection.shards !== undefined,
    );
    const connectionId = () =>
      this.#connection.connectionId?.(key, this.#terms.wait !== null) ?? null;
    const sentBy = connectionId();
    const isOnce = () => connectionId() === sentBy;
    this.#listener.onSent();
    const settleAll = (answer: unknown) => {
      this.#listener.onAnswered();
      const once = isOnce();
      if (batch.length === 1) settle(batch[0]!, answer, once);
      else if (isListOf(answer, batch.length)) {
        for (let i = 0; i < batch.length; i++) settle(batch[i]!, answer[i], once);
      } else rejectAll(batch, unexpectedAnswer(answer));
    };
    return this.#run(this.#script.bySha, sent).then(settleAll, (error: unknown) =>
      this.#sendAgain(batch, sent, error, isOnce).then(settleAll, (last: unknown) => {
        this.#listener.onAnswered();
        rejectAll(batch, isOnce() ? explain(last) : inDoubt(explain(last)));
      }),
    );
  }

  /** Repeats the call where the server refused it before anything ran. Throws any other error. */
  async #sendAgain(
    batch: readonly Operation[],
    sent: ScriptArguments,
    refusal: unknown,
    isOnce: () => boolean,
  ): Promise<unknown> {
    const { bySha, inFull } = this.#script;
    let error = refusal;
    for (let looks = 1; looks < MOVING_LOOKS; looks++) {
      // A server that was restarted or flushed, or that became primary, may not know the script.
      const forgotten = isMissingScript(error);
      // While a Cluster moves a slot, it refuses a call whose keys are on both sides.
      if (!forgotten && isMoving(error)) await sleep(systemClock, MOVING_PAUSE_MS, undefined);
      else if (!forgotten) break;
      try {
        return await this.#run(forgotten ? inFull : bySha, sent);
      } catch (next) {
        error = next;
      }
    }
    if (batch.length === 1 || !isForbidden(error) || !isOnce()) throw error;
    // One key that this user may not access makes the server refuse the whole call.
    return Promise.all(batch.map((operation) => this.#alone(operation)));
  }

  /** Sends one operation alone. A failure is given as its answer. */
  #alone({ key, words }: Operation): Promise<unknown> {
    return new Promise((resolve) => {
      void this.send([{ key, words, until: Infinity, resolve, reject: resolve }]);
    });
  }

  /** Gives the list of answers; for a single operation its answer, without a list. */
  #run(script: ScriptRef, sent: ScriptArguments): Promise<unknown> {
    const { wait } = this.#terms;
    if (wait !== null) return this.#replicated(script, sent, wait);
    try {
      return this.#connection.runScript(script, sent.keys, sent.args);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #replicated(script: ScriptRef, sent: ScriptArguments, wait: ReplicaWait): Promise<unknown> {
    const { answer, replicas } = await this.#connection.runScriptAndWait(
      script,
      sent.keys,
      sent.args,
      wait,
    );
    if (replicas >= wait.replicas) return answer;
    const honest = (one: unknown) => (mustReachReplicas(one) ? unconfirmed(replicas, wait) : one);
    return !sent.alone && Array.isArray(answer) ? answer.map(honest) : honest(answer);
  }
}

function unconfirmed(replicas: number, wait: ReplicaWait): EngineError {
  return new EngineError(
    `${replicas} of the ${wait.replicas} replicas that must have it answered within ${wait.timeoutMs} ms`,
    { effect: "unknown", retryable: true },
  );
}

function rejectAll(batch: readonly Operation[], reason: HoldfastError): void {
  for (const operation of batch) operation.reject(reason);
}

/** once: whether it is certain that the client did not send the operation twice by itself. */
function settle(operation: Operation, answer: unknown, once: boolean): void {
  const outcome =
    once || !mayBeFromCopy(operation.words[0]!, answer) ? outcomeOf(answer) : perhapsSentTwice();
  if (!(outcome instanceof HoldfastError)) operation.resolve(outcome, once);
  else operation.reject(once ? outcome : inDoubt(outcome));
}
