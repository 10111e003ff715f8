import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../core/runtime/clock.js";
import { EngineError, type HoldfastError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Database, RawAnswer, SqlOperation } from "./database.js";
import { lists } from "./shape.js";

const MAX_BATCH = 256;
// More would take the pool from its other users; fewer would let one slow transaction hold up the
// rest.
const MAX_CONCURRENT_BATCHES = 4;
const MAX_TRIES = 4;
const BATCH_WAIT_MS = 250;
const ACQUIRE_WAIT_MS = 1_000;

interface Entry {
  readonly operation: SqlOperation;
  readonly startedAt: number;
  readonly limitMs: number;
  readonly resolve: (answer: RawAnswer) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends operations in batches. Operations that arrive while others are in flight travel together,
 * because a commit costs far more than an operation. Operations of one resource leave in order of
 * arrival, one batch at a time, so that the queue at the server has the order of this process.
 */
export class OperationBatcher {
  readonly #database: Pick<Database, "run" | "failure">;
  readonly #busyNames = new Set<string>();
  #pending: Entry[] = [];
  #inFlight = 0;
  #flushScheduled = false;

  constructor(database: Pick<Database, "run" | "failure">) {
    this.#database = database;
  }

  run(operation: SqlOperation, limitMs: number): Promise<RawAnswer> {
    return new Promise((resolve, reject) => {
      const startedAt = systemClock.now();
      this.#pending.push({ operation, startedAt, limitMs, resolve, reject });
      // After the pending microtasks, so that operations of the same tick share a batch.
      if (this.#flushScheduled) return;
      this.#flushScheduled = true;
      process.nextTick(() => this.#flush());
    });
  }

  #flush(): void {
    this.#flushScheduled = false;
    while (this.#inFlight < MAX_CONCURRENT_BATCHES) {
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      const names = new Set(batch.map(({ operation }) => operation.name));
      for (const name of names) this.#busyNames.add(name);
      this.#inFlight++;
      void this.#send(batch).finally(() => {
        this.#inFlight--;
        for (const name of names) this.#busyNames.delete(name);
        this.#flush();
      });
    }
  }

  #nextBatch(): Entry[] {
    const batch: Entry[] = [];
    const rest: Entry[] = [];
    for (const entry of this.#pending) {
      const canGo = batch.length < MAX_BATCH && !this.#busyNames.has(entry.operation.name);
      (canGo ? batch : rest).push(entry);
    }
    this.#pending = rest;
    return batch;
  }

  async #send(all: readonly Entry[]): Promise<void> {
    const batch = all.filter((entry) => this.#isStillAwaited(entry));
    if (batch.length === 0) return;
    const limitMs = Math.max(...batch.map((entry) => remainingMs(entry)));
    const operations = batch.map((entry) => entry.operation);
    const groups = byName(batch, ({ operation }) => operation.name);
    const isOneResource = groups.length === 1;
    try {
      const waitMs = isOneResource ? Math.min(...batch.map(lockWaitMs)) : BATCH_WAIT_MS;
      const answers = await retryConflicts(this.#database, () =>
        this.#database.run(operations, Math.min(waitMs, Math.ceil(limitMs)), limitMs),
      );
      const read = lists(answers, batch.length);
      for (const [i, entry] of batch.entries()) entry.resolve(read[i]!);
    } catch (error) {
      const failure = this.#database.failure(error);
      if (failure.why === "locked" && isOneResource) {
        await this.#answerLocked(batch, failure.error);
      } else if (failure.why === "locked") {
        await Promise.all(groups.map((group) => this.#send(group)));
      } else if (batch.length > 1 && isWithoutEffect(failure.error)) {
        // One invalid operation makes the server refuse the whole batch. Sent alone, it fails
        // alone.
        await Promise.all(batch.map((entry) => this.#send([entry])));
      } else {
        for (const entry of batch) entry.reject(failure.error);
      }
    }
  }

  /**
   * Another transaction has locked the resource. An acquire is answered with busy; the other
   * operations are sent again together.
   */
  async #answerLocked(batch: readonly Entry[], error: HoldfastError): Promise<void> {
    const patient = batch.filter(({ operation }) => operation.verb !== "acquire");
    for (const entry of batch) {
      if (entry.operation.verb === "acquire") entry.resolve(["busy", ACQUIRE_WAIT_MS, []]);
      else if (patient.length === batch.length) entry.reject(error);
    }
    if (patient.length < batch.length) await this.#send(patient);
  }

  /** The caller of an expired operation has given up, so the operation is not sent. */
  #isStillAwaited(entry: Entry): boolean {
    if (remainingMs(entry) > 0) return true;
    entry.reject(
      new EngineError("not sent in time: all connections to the database are in use", {
        effect: "none",
        retryable: true,
      }),
    );
    return false;
  }
}

/** Retries deadlocks and serialization failures a few times: they had no effect. */
export async function retryConflicts<T>(
  database: Pick<Database, "failure">,
  ask: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const failure = database.failure(error);
      if (attempt === MAX_TRIES || failure.why !== "conflict") throw error;
      emit("failed", () => ({ during: "retry", error: failure.error }));
      await sleep(systemClock, randomInt(1, 10 * attempt), undefined);
    }
  }
}

/** Groups are in the order in which each name first appears. */
export function byName<T>(all: readonly T[], name: (one: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(name(one));
    if (group === undefined) groups.set(name(one), [one]);
    else group.push(one);
  }
  return [...groups.values()];
}

function isWithoutEffect(error: HoldfastError): boolean {
  return error instanceof EngineError && error.effect === "none";
}

function lockWaitMs({ operation, limitMs }: Entry): number {
  return operation.verb === "acquire" ? ACQUIRE_WAIT_MS : Math.max(50, Math.floor(limitMs * 0.8));
}

function remainingMs({ startedAt, limitMs }: Entry): number {
  return startedAt + limitMs - systemClock.now();
}
