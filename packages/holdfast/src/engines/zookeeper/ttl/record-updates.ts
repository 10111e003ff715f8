import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { inDoubt } from "../failure.js";
import { isEmpty, type LockRecord, withLeftAt } from "./lock-record.js";
import { ObservedGrants } from "./observed-grants.js";
import type { RecordStore, StoredRecord } from "./record-store.js";
import type { RecordView } from "./record-view.js";

const MOST_PAUSE_MS = 50;

/** An answer, and the record to write; null writes nothing. */
export type Decision<A> = readonly [answer: A, next: LockRecord | null];

interface PendingUpdate {
  readonly until: number;
  /** Whether a repeated update finds what the first one wrote. */
  readonly repeatable: boolean;
  /** Whether a write of it was not answered, and may have taken effect. */
  doubtful: boolean;
  readonly decide: (view: RecordView) => Decision<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** Updates records: reads a record, decides, and writes it back if nobody wrote in between. */
export class RecordUpdates {
  readonly observedGrants = new ObservedGrants();
  readonly #store: RecordStore;
  /** By path, the updates of this process that are not answered yet. */
  readonly #pending = new Map<string, PendingUpdate[]>();

  constructor(store: RecordStore) {
    this.#store = store;
  }

  async read(path: string, until: number): Promise<RecordView | null> {
    const { record } = await this.#read(path, until);
    if (record === null) return null;
    const view = this.#view(path, record, () => 0n);
    if (!view.grants.some(({ untimed }) => untimed)) return view;
    await this.timeLeftGrants(path, until);
    return this.read(path, until);
  }

  /**
   * Writes the record again as it is. The times of this write and of the one before say how long
   * ago grants were left behind.
   */
  timeLeftGrants(path: string, until: number): Promise<void> {
    return this.update(path, until, ({ grants, record }) => [
      undefined,
      grants.some(({ untimed }) => untimed) ? record : null,
    ]);
  }

  /**
   * Updates of one process must not get in each other's way, so updates that wait are written
   * together. A repeatable update is made again when the connection breaks: a write that is still
   * on its way fits only the state that it was made for.
   */
  update<A>(
    path: string,
    until: number,
    decide: (view: RecordView) => Decision<A>,
    { repeatable = false } = {},
  ): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      const settle = { resolve: resolve as (answer: unknown) => void, reject };
      const update: PendingUpdate = { until, decide, repeatable, doubtful: false, ...settle };
      const pending = this.#pending.get(path);
      if (pending !== undefined) {
        pending.push(update);
        return;
      }
      const first: PendingUpdate[] = [update];
      this.#pending.set(path, first);
      void this.#work(path, first);
    });
  }

  async #work(path: string, pending: PendingUpdate[]): Promise<void> {
    let failure: EngineError | null = null;
    for (let tries = 0; pending.length > 0; tries++) {
      const now = systemClock.now();
      for (const late of pending.filter(({ until }) => until <= now)) {
        pending.splice(pending.indexOf(late), 1);
        fail(late, failure ?? tooBusy());
      }
      if (pending.length === 0) break;
      try {
        if (await this.#round(path, pending)) tries = 0;
        else if (tries > 0) await pause();
        failure = null;
      } catch (error) {
        // A repeated claim has the same grantId, and finds what was written although the answer was
        // lost.
        const isOver = ({ repeatable }: PendingUpdate) =>
          !isBroken(error) || !(repeatable || error.effect === "none");
        for (const over of pending.filter(isOver)) {
          pending.splice(pending.indexOf(over), 1);
          fail(over, error as Error);
        }
        if (!isBroken(error)) continue;
        failure = error;
        for (const update of pending) update.doubtful ||= error.effect === "unknown";
        await pause();
      }
    }
    this.#pending.delete(path);
  }

  /**
   * One read, the decisions of all pending updates, one write. False if somebody wrote in between.
   */
  async #round(path: string, pending: PendingUpdate[]): Promise<boolean> {
    const until = pending.reduce((latest, update) => Math.max(latest, update.until), 0);
    const startedAt = systemClock.now();
    const { record, version, token, writtenAt } = await this.#read(path, until);
    if (record === null) throw notOurs(path);
    const answered: { update: PendingUpdate; settle: () => void }[] = [];
    let next = record;
    let [changed, taken] = [false, false];
    const takeToken = () => {
      taken = true;
      return token;
    };
    for (const update of pending) {
      if (taken) break;
      const view = this.#view(path, next, takeToken);
      try {
        const [answer, wanted] = update.decide(view);
        answered.push({ update, settle: () => update.resolve(answer) });
        if (wanted === null) continue;
        [next, changed] = [wanted, true];
      } catch (error) {
        answered.push({ update, settle: () => update.reject(error as Error) });
      }
    }
    if (changed && !(version === null && isEmpty(next))) {
      if (version === null || writtenAt === null) {
        await this.#store.create(path, until);
        return false;
      }
      next = withLeftAt(next, record, writtenAt);
      if (!(await this.#store.write(path, next, version, until))) return false;
      this.observedGrants.wrote(path, next, startedAt);
    }
    for (const { update, settle } of answered) {
      pending.splice(pending.indexOf(update), 1);
      settle();
    }
    return true;
  }

  #view(path: string, record: LockRecord, takeToken: () => bigint): RecordView {
    return { ...this.observedGrants.judge(path, record), takeToken };
  }

  async #read(path: string, until: number): Promise<StoredRecord> {
    const stored = await this.#store.read(path, until);
    const { record, writtenAt } = stored;
    if (record !== null) this.observedGrants.read(path, record, writtenAt);
    return stored;
  }
}

function pause(): Promise<void> {
  return sleep(systemClock, randomInt(MOST_PAUSE_MS), undefined, false);
}

/**
 * Whether the connection broke: such an error has a cause. Another server is asked in the time that
 * is left. A refusal of a server has no cause. A server whose answers cannot be read is not asked
 * again.
 */
function isBroken(error: unknown): error is EngineError {
  if (!(error instanceof EngineError) || !error.retryable) return false;
  return error.cause !== undefined && !(error.cause instanceof RangeError);
}

function fail({ reject, doubtful }: PendingUpdate, error: Error): void {
  const saysNone = error instanceof EngineError && error.effect === "none";
  reject(doubtful && saysNone ? inDoubt(error) : error);
}

function tooBusy(): EngineError {
  const message = "others wrote too often for us to get in between";
  return new EngineError(message, { effect: "none", retryable: true });
}

function notOurs(path: string): EngineError {
  const message = `the node ${path} holds something that is not a lock`;
  return new EngineError(message, { effect: "none", retryable: false });
}
