import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../clock.js";
import { EngineError } from "../errors.js";
import { emit } from "../events.js";
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
    try {
      const waitMs = batch.length > 1 ? BATCH_WAIT_MS : waitOf(batch[0]!);
      const answers = await retried(this.#database, () =>
        this.#database.run(operations, Math.min(waitMs, Math.ceil(limitMs)), limitMs),
      );
      const read = lists(answers, batch.length);
      for (const [i, entry] of batch.entries()) entry.resolve(read[i]!);
    } catch (error) {
      const failure = this.#database.failure(error);
      const single = batch.length === 1;
      if (!single && failure.error instanceof EngineError && failure.error.effect === "none") {
        // One that cannot be carried out refuses them all. Each alone, it refuses only itself.
        await Promise.all(batch.map((entry) => this.#send([entry])));
      } else if (single && failure.why === "locked" && batch[0]!.operation.verb === "acquire") {
        // Whoever is at work on it has it.
        batch[0]!.resolve(["busy", TRY_WAIT_MS, []]);
      } else {
        for (const entry of batch) entry.reject(failure.error);
      }
    }
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

function waitOf({ operation, limitMs }: Entry): number {
  return operation.verb === "acquire" ? TRY_WAIT_MS : Math.max(50, Math.floor(limitMs * 0.8));
}

function leftMs({ startedAt, limitMs }: Entry): number {
  return startedAt + limitMs - systemClock.now();
}
