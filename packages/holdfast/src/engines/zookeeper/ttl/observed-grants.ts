import { type Clock, systemClock } from "../../../core/runtime/clock.js";
import { elapsedMs, type LeaderTime } from "../session/leader-time.js";
import { type LockRecord, leftAt, type RecordedGrant } from "./lock-record.js";

const REMEMBERED = 10_000;
/**
 * A waiter looks again within a second, or at its own pace. A path that was looked at within this
 * time is not forgotten, however many there are. Otherwise a process that looks at more dead
 * holders than are remembered, one after the other, would never find out that they are dead.
 */
const IN_USE_MS = 30_000;

interface Observation {
  /** The token and the beat of a grant; "" for a tombstone. */
  readonly state: string;
  since: number;
  /**
   * Whether this process wrote this state. Then `since` is no later than the send of that write.
   */
  readonly isOurs: boolean;
  /**
   * Whether this process wrote after the grant was left behind, and so knows the leader's time of
   * that.
   */
  timed: boolean;
}

interface ObservedRecord {
  readonly at: number;
  readonly observations: Map<string, Observation>;
}

/** A grant as this process judges it, by how long it has seen the grant unchanged. */
export interface ObservedGrant {
  readonly hash: string;
  readonly grant: RecordedGrant;
  /** More than 0 while the grant lives. */
  readonly leftMs: number;
  /** The same, with its lock-delay. */
  readonly blocksMs: number;
  /** How much of leftMs no observer can deny; 0 if we do not know. */
  readonly sureMs: number;
  /** The grant was left behind, and may be over for longer than we have seen it. */
  readonly untimed: boolean;
}

/**
 * Observes since when each grant is unchanged, by this process's own monotonic clock. A holder
 * counts from before it wrote, and an observer from after it read. So the holder stops first,
 * whatever the wall clocks say.
 */
export class ObservedGrants {
  readonly #clock: Clock;
  /** In the order of the last look at each. */
  readonly #byPath = new Map<string, ObservedRecord>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** How many paths are remembered. */
  get size(): number {
    return this.#byPath.size;
  }

  /** Observes a record that was just read, and removes tombstones that are old enough from it. */
  read(path: string, record: LockRecord, writtenAt: LeaderTime | null): void {
    const now = this.#clock.now();
    this.#observe(path, record, now, false);
    const observed = this.#byPath.get(path)?.observations;
    for (const [hash, grant] of Object.entries(record.grants)) {
      const observation = observed?.get(hash);
      const since = leftAt(grant);
      if (observation === undefined || since === null || writtenAt === null) continue;
      // Nobody renews a grant that was left behind, so the leader's clock may say how old it is.
      observation.since = Math.min(observation.since, now - elapsedMs(since, writtenAt));
    }
  }

  /** Observes a record that this process wrote; `at` is before the write was sent. */
  wrote(path: string, record: LockRecord, at: number): void {
    this.#observe(path, record, at, true);
    const observed = this.#byPath.get(path)?.observations;
    for (const [hash, grant] of Object.entries(record.grants)) {
      if (leftAt(grant) !== null) observed!.get(hash)!.timed = true;
    }
  }

  /**
   * The grants that still block, as far as this process has observed, and the record without the
   * others. A grant that was decided since the reading counts from now.
   */
  judge(
    path: string,
    { grants, tombstones }: LockRecord,
  ): { grants: ObservedGrant[]; record: LockRecord } {
    const now = this.#clock.now();
    const observed = this.#byPath.get(path)?.observations;
    const judged = Object.entries(grants).map(([hash, grant]): ObservedGrant => {
      const known = observed?.get(hash);
      const observation = known?.state === stateOf(grant) ? known : null;
      const leftMs = grant.ttlMs - (observation === null ? 0 : now - observation.since);
      return {
        ...{ hash, grant, leftMs, blocksMs: leftMs + grant.lockDelayMs },
        sureMs: observation?.isOurs ? Math.max(0, leftMs) : 0,
        untimed: grant.left && observation?.timed !== true,
      };
    });
    const blocking = judged.filter(({ blocksMs }) => blocksMs > 0);
    const kept = Object.fromEntries(blocking.map(({ hash, grant }) => [hash, grant]));
    return { grants: blocking, record: { grants: kept, tombstones } };
  }

  /** For tests: as if everything observed on this path had been observed so much earlier. */
  age(path: string, ms: number): void {
    const observed = this.#byPath.get(path)?.observations.values();
    for (const observation of observed ?? []) observation.since -= ms;
  }

  #observe(path: string, record: LockRecord, now: number, isOurs: boolean): void {
    const before = this.#byPath.get(path)?.observations;
    const observations = new Map<string, Observation>();
    const observe = (key: string, state: string) => {
      const known = before?.get(key);
      const observation =
        known?.state === state ? known : { state, since: now, isOurs, timed: false };
      observations.set(key, observation);
      return now - observation.since;
    };
    for (const [hash, grant] of Object.entries(record.grants)) observe(hash, stateOf(grant));
    for (const [hash, ms] of record.tombstones) {
      if (observe(`+${hash}`, "") >= ms) record.tombstones.delete(hash);
    }
    this.#remember(path, observations);
  }

  #remember(path: string, observations: Map<string, Observation>): void {
    const at = this.#clock.now();
    this.#byPath.delete(path);
    if (observations.size > 0) this.#byPath.set(path, { at, observations });
    // More than one each time, so that they become fewer again.
    for (const [oldest, observed] of this.#byPath) {
      if (this.#byPath.size <= REMEMBERED || observed.at > at - IN_USE_MS) break;
      this.#byPath.delete(oldest);
    }
  }
}

/**
 * Changes with every renewal. A claim that core repeats may be granted a second time after its
 * first grant was over. Then its beats begin again, and its token is another one.
 */
function stateOf({ token, beat }: RecordedGrant): string {
  return `${token} ${beat}`;
}
