import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError, HoldfastError, inDoubt } from "../../../errors.js";
import type { RedisConnection, ReplicaWait, ScriptRef } from "../clients/connection.js";
import { mustReachReplicas } from "../protocol/decode.js";
import { encodeBatch, type ScriptArguments } from "../protocol/encode.js";
import {
  explain,
  isDoubtful,
  isForbidden,
  isMissingScript,
  isMoving,
  outcomeOf,
  sentTwice,
} from "../protocol/failure.js";
import { type Script, scriptFor } from "../protocol/script.js";
import { isListOf, unexpectedAnswer } from "../protocol/shape.js";
import type { Operation } from "./operation.js";

// Together as long as a call may take by default: then the caller has given up anyway.
const MOVING_PAUSE_MS = 50;
const MOVING_LOOKS = 100;

export interface CallTerms {
  readonly idleMs: number;
  /** Where we hear of grants of this key's resource; the same for all keys of a slot. */
  channelOf(key: string): string;
  /** How many replicas must have what was written; null for none. */
  readonly wait: ReplicaWait | null;
}

/** Told of every call, before those in it are told of their answers. */
export interface CallListener {
  onSent(): void;
  onAnswered(): void;
}

/**
 * One call of the script for one batch, and its answer for each in it. Calls again what the server
 * refused before anything ran, and says of each whether the client may have sent it twice.
 */
export class ScriptCaller {
  readonly #connection: RedisConnection;
  readonly #terms: CallTerms;
  readonly #listener: CallListener;
  readonly #script: Script;

  constructor(connection: RedisConnection, terms: CallTerms, listener: CallListener) {
    this.#connection = connection;
    this.#terms = terms;
    this.#listener = listener;
    this.#script = scriptFor(terms.idleMs, connection.shards !== undefined);
  }

  /** Resolves when all of them are answered; never rejects. */
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

  /** After a refusal that nothing ran with. Anything else is thrown on. */
  async #sendAgain(
    batch: readonly Operation[],
    sent: ScriptArguments,
    refusal: unknown,
    isOnce: () => boolean,
  ): Promise<unknown> {
    const { bySha, inFull } = this.#script;
    let error = refusal;
    for (let looks = 1; looks < MOVING_LOOKS; looks++) {
      // A server that was restarted, failed over or flushed has forgotten the script.
      const forgotten = isMissingScript(error);
      // While a Cluster moves a slot, it refuses what needs keys on both sides.
      if (!forgotten && isMoving(error)) await sleep(systemClock, MOVING_PAUSE_MS, undefined);
      else if (!forgotten) break;
      try {
        return await this.#run(forgotten ? inFull : bySha, sent);
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
      void this.send([{ key, words, until: Infinity, resolve, reject: resolve }]);
    });
  }

  /** Gives the answers; where one alone was asked for, the answer. */
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

/** once: whether the client cannot have sent it twice by itself. */
function settle(operation: Operation, answer: unknown, once: boolean): void {
  const outcome =
    once || !isDoubtful(operation.words[0]!, answer) ? outcomeOf(answer) : sentTwice();
  if (!(outcome instanceof HoldfastError)) operation.resolve(outcome, once);
  else operation.reject(once ? outcome : inDoubt(outcome));
}
