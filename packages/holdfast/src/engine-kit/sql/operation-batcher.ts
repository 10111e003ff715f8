import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../core/runtime/clock.js";
import { EngineError, type HoldfastError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Database, Operation, Raw } from "./database.js";
import { lists } from "./shape.js";

const MAX_BATCH = 256;
// More would make a pool's other users wait; fewer would let one slow transaction hold up the rest.
const AT_A_TIME = 4;
const TRIES = 4;
const BATCH_WAIT_MS = 250;
const TRY_WAIT_MS = 1_000;

interface Entry {
  readonly operation: Operation;
  readonly startedAt: number;
  readonly limitMs: number;
  readonly resolve: (answer: Raw) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends operations. Those that come while others are under way travel together: a commit costs far
 * more than an operation. Those of one resource leave in the order in which they came, one batch at
 * a time, so that the line at the server is the line in this process.
 */
export class Desk {
  readonly #database: Pick<Database, "run" | "failure">;
  readonly #atWork = new Set<string>();
  #waiting: Entry[] = [];
  #underWay = 0;
  #flushing = false;

  constructor(database: Pick<Database, "run" | "failure">) {
    this.#database = database;
  }

  run(operation: Operation, limitMs: number): Promise<Raw> {
    return new Promise((resolve, reject) => {
      const startedAt = systemClock.now();
      this.#waiting.push({ operation, startedAt, limitMs, resolve, reject });
      // After the microtasks that are due: whoever asks in this turn goes along.
      if (this.#flushing) return;
      this.#flushing = true;
      process.nextTick(() => this.#flush());
    });
  }

  #flush(): void {
    this.#flushing = false;
    while (this.#underWay < AT_A_TIME) {
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      const names = new Set(batch.map(({ operation }) => operation.name));
      for (const name of names) this.#atWork.add(name);
      this.#underWay++;
      void this.#send(batch).finally(() => {
        this.#underWay--;
        for (const name of names) this.#atWork.delete(name);
        this.#flush();
      });
    }
  }

  #nextBatch(): Entry[] {
    const batch: Entry[] = [];
    const rest: Entry[] = [];
    for (const entry of this.#waiting) {
      const goes = batch.length < MAX_BATCH && !this.#atWork.has(entry.operation.name);
      (goes ? batch : rest).push(entry);
    }
    this.#waiting = rest;
    return batch;
  }

  async #send(all: readonly Entry[]): Promise<void> {
    const batch = all.filter((entry) => this.#isDue(entry));
    if (batch.length === 0) return;
    const limitMs = Math.max(...batch.map((entry) => leftMs(entry)));
    const operations = batch.map((entry) => entry.operation);
    const groups = byName(batch, ({ operation }) => operation.name);
    const isOfOne = groups.length === 1;
    try {
      const waitMs = isOfOne ? Math.min(...batch.map(waitOf)) : BATCH_WAIT_MS;
      const answers = await retried(this.#database, () =>
        this.#database.run(operations, Math.min(waitMs, Math.ceil(limitMs)), limitMs),
      );
      const read = lists(answers, batch.length);
      for (const [i, entry] of batch.entries()) entry.resolve(read[i]!);
    } catch (error) {
      const failure = this.#database.failure(error);
      if (failure.why === "locked" && isOfOne) {
        await this.#locked(batch, failure.error);
      } else if (failure.why === "locked") {
        await Promise.all(groups.map((group) => this.#send(group)));
      } else if (batch.length > 1 && isWithoutEffect(failure.error)) {
        // One that cannot be carried out refuses them all. Each alone, it refuses only itself.
        await Promise.all(batch.map((entry) => this.#send([entry])));
      } else {
        for (const entry of batch) entry.reject(failure.error);
      }
    }
  }

  /** Whoever is at work on it has it. Who does not want to wait is told so; the others go on together. */
  async #locked(batch: readonly Entry[], error: HoldfastError): Promise<void> {
    const patient = batch.filter(({ operation }) => operation.verb !== "acquire");
    for (const entry of batch) {
      if (entry.operation.verb === "acquire") entry.resolve(["busy", TRY_WAIT_MS, []]);
      else if (patient.length === batch.length) entry.reject(error);
    }
    if (patient.length < batch.length) await this.#send(patient);
  }

  /** Nobody waits for its answer any more, so it is not sent at all. */
  #isDue(entry: Entry): boolean {
    if (leftMs(entry) > 0) return true;
    entry.reject(
      new EngineError("the database had no time for it: all connections are in use", {
        effect: "none",
        retryable: true,
      }),
    );
    return false;
  }
}

/** Deadlocks and serialization failures had no effect, and are tried again a few times. */
export async function retried<T>(
  database: Pick<Database, "failure">,
  ask: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      const failure = database.failure(error);
      if (attempt === TRIES || failure.why !== "conflict") throw error;
      emit("failed", () => ({ during: "retry", error: failure.error }));
      await sleep(systemClock, randomInt(1, 10 * attempt), undefined);
    }
  }
}

/** In the order in which each name came first. */
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

function waitOf({ operation, limitMs }: Entry): number {
  return operation.verb === "acquire" ? TRY_WAIT_MS : Math.max(50, Math.floor(limitMs * 0.8));
}

function leftMs({ startedAt, limitMs }: Entry): number {
  return startedAt + limitMs - systemClock.now();
}
