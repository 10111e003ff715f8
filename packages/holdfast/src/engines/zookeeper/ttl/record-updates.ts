import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { inDoubt } from "../failure.js";
import { isEmpty, type Ledger, withLeftAt } from "./record.js";
import type { Page, Records } from "./records.js";
import { type Judged, Sightings } from "./sightings.js";

const MOST_PAUSE_MS = 50;

/** What a decision is made on, and what it may write back. */
export interface Reading {
  readonly ledger: Ledger;
  readonly grants: readonly Judged[];
  /** For the one grant that may be written on this reading: greater than every earlier one's. */
  takeToken(): bigint;
}

interface Change {
  readonly until: number;
  /** Whether it finds its own work where it is made once more. */
  readonly repeatable: boolean;
  /** Whether it was written down without an answer: it may be there. */
  doubtful: boolean;
  readonly decide: (reading: Reading) => Decision<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** null writes nothing. */
export type Decision<A> = readonly [answer: A, next: Ledger | null];

/** Changes the ledger of a resource by reading it and writing it back if nobody wrote meanwhile. */
export class Ledgers {
  readonly sightings = new Sightings();
  readonly #records: Records;
  readonly #waiting = new Map<string, Change[]>();

  constructor(records: Records) {
    this.#records = records;
  }

  async read(path: string, until: number): Promise<Reading | null> {
    const { ledger } = await this.#read(path, until);
    if (ledger === null) return null;
    const reading = this.#reading(path, ledger, () => 0n);
    if (!reading.grants.some(({ untimed }) => untimed)) return reading;
    await this.time(path, until);
    return this.read(path, until);
  }

  /**
   * Writes the record once more, as it is: from its time, and that of the page before, it follows how
   * long ago grants were left behind.
   */
  time(path: string, until: number): Promise<void> {
    return this.change(path, until, ({ grants, ledger }) => [
      undefined,
      grants.some(({ untimed }) => untimed) ? ledger : null,
    ]);
  }

  /**
   * Those of one process need not be in each other's way: what waits is written together. What is repeatable
   * is made once more where the connection breaks under it: a write that is still on its way fits only the
   * page that it was made for.
   */
  change<A>(
    path: string,
    until: number,
    decide: (reading: Reading) => Decision<A>,
    { repeatable = false } = {},
  ): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      const settle = { resolve: resolve as (answer: unknown) => void, reject };
      const change: Change = { until, decide, repeatable, doubtful: false, ...settle };
      const waiting = this.#waiting.get(path);
      if (waiting !== undefined) {
        waiting.push(change);
        return;
      }
      const first: Change[] = [change];
      this.#waiting.set(path, first);
      void this.#work(path, first);
    });
  }

  async #work(path: string, waiting: Change[]): Promise<void> {
    let failure: EngineError | null = null;
    for (let tries = 0; waiting.length > 0; tries++) {
      const now = systemClock.now();
      for (const late of waiting.filter(({ until }) => until <= now)) {
        waiting.splice(waiting.indexOf(late), 1);
        fail(late, failure ?? tooBusy());
      }
      if (waiting.length === 0) break;
      try {
        if (await this.#round(path, waiting)) tries = 0;
        else if (tries > 0) await pause();
        failure = null;
      } catch (error) {
        // Whoever asks again does so with the same grantId, and finds what was written after all.
        const isOver = ({ repeatable }: Change) =>
          !isBroken(error) || !(repeatable || error.effect === "none");
        for (const over of waiting.filter(isOver)) {
          waiting.splice(waiting.indexOf(over), 1);
          fail(over, error as Error);
        }
        if (!isBroken(error)) continue;
        failure = error;
        for (const change of waiting) change.doubtful ||= error.effect === "unknown";
        await pause();
      }
    }
    this.#waiting.delete(path);
  }

  /** One reading, the decisions of all who wait, one write. False if somebody wrote in between. */
  async #round(path: string, waiting: Change[]): Promise<boolean> {
    const until = waiting.reduce((latest, change) => Math.max(latest, change.until), 0);
    const startedAt = systemClock.now();
    const { ledger, edition, token, written } = await this.#read(path, until);
    if (ledger === null) throw notOurs(path);
    const answered: { change: Change; settle: () => void }[] = [];
    let next = ledger;
    let [changed, taken] = [false, false];
    const takeToken = () => {
      taken = true;
      return token;
    };
    for (const change of waiting) {
      if (taken) break;
      const reading = this.#reading(path, next, takeToken);
      try {
        const [answer, wanted] = change.decide(reading);
        answered.push({ change, settle: () => change.resolve(answer) });
        if (wanted === null) continue;
        [next, changed] = [wanted, true];
      } catch (error) {
        answered.push({ change, settle: () => change.reject(error as Error) });
      }
    }
    if (changed && !(edition === null && isEmpty(next))) {
      if (edition === null || written === null) {
        await this.#records.make(path, until);
        return false;
      }
      next = withLeftAt(next, ledger, written);
      if (!(await this.#records.write(path, next, edition, until))) return false;
      this.sightings.wrote(path, next, startedAt);
    }
    for (const { change, settle } of answered) {
      waiting.splice(waiting.indexOf(change), 1);
      settle();
    }
    return true;
  }

  #reading(path: string, ledger: Ledger, takeToken: () => bigint): Reading {
    return { ...this.sightings.judge(path, ledger), takeToken };
  }

  async #read(path: string, until: number): Promise<Page> {
    const page = await this.#records.read(path, until);
    if (page.ledger !== null) this.sightings.read(path, page.ledger, page.written);
    return page;
  }
}

function pause(): Promise<void> {
  return sleep(systemClock, randomInt(MOST_PAUSE_MS), undefined, false);
}

/**
 * Whether the connection broke, which a cause tells: another server is asked in the time that is left. What
 * a server refuses has none; and of one whose answers cannot be read nothing more is asked.
 */
function isBroken(error: unknown): error is EngineError {
  if (!(error instanceof EngineError) || !error.retryable) return false;
  return error.cause !== undefined && !(error.cause instanceof RangeError);
}

function fail({ reject, doubtful }: Change, error: Error): void {
  const isCertain = !(error instanceof EngineError) || error.effect === "unknown";
  reject(doubtful && !isCertain ? inDoubt(error) : error);
}

function tooBusy(): EngineError {
  const message = "others wrote too often for us to get in between";
  return new EngineError(message, { effect: "none", retryable: true });
}

function notOurs(path: string): EngineError {
  const message = `the node ${path} holds something that is not a lock`;
  return new EngineError(message, { effect: "none", retryable: false });
}
