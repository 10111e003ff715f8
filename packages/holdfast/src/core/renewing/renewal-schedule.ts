import { emit } from "../../events.js";
import { randomByte } from "../holding/grant-id.js";
import type { Clock, Timer } from "../runtime/clock.js";
import { DeadlineHeap } from "./deadline-heap.js";
import type { RenewalGroup } from "./renewal-group.js";

// While anything is held, the clocks are read at least this often, so that a suspended machine or a
// jump of the wall clock is noticed within a second.
const LOOK_EVERY_MS = 1_000;

/** Holds the instant at which each group needs attention next, and one timer for all of them. */
export class RenewalSchedule {
  readonly #clock: Clock;
  readonly #look: () => void;
  readonly #heap = new DeadlineHeap<RenewalGroup>();
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  get groups(): readonly RenewalGroup[] {
    return this.#heap.items();
  }

  /**
   * Removes and returns the first group, if it is due by the instant that byWhen() gives for it.
   */
  takeFirst(byWhen: (group: RenewalGroup) => number): RenewalGroup | undefined {
    const group = this.#heap.first;
    if (group === undefined || this.#heap.earliest > byWhen(group)) return undefined;
    this.#heap.delete(group);
    return group;
  }

  /** Plans the next renewal of a group; never later than planned before. */
  plan(group: RenewalGroup): void {
    // A jitter of a tenth keeps processes that started together from renewing together for ever.
    const at = group.since + group.renewEveryMs * (1 - randomByte() / 2_560);
    group.renewAt = Math.min(group.renewAt, at);
  }

  /** Schedules a managed group by its instants. */
  set(group: RenewalGroup, now: number): void {
    if (!group.managed) return;
    const { watchAt, renewing, wantsRenewal, renewAt } = group;
    const at = renewing === null && wantsRenewal ? Math.min(watchAt, renewAt) : watchAt;
    this.#heap.set(group, at);
    this.#wake(Math.min(at, now + LOOK_EVERY_MS), now);
  }

  drop(group: RenewalGroup): void {
    this.#heap.delete(group);
    if (this.#heap.size === 0) this.pause();
  }

  /** Clears the timer until set() or resume() is called. */
  pause(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  resume(now: number): void {
    if (this.#heap.size > 0) this.#wake(Math.min(this.#heap.earliest, now + LOOK_EVERY_MS), now);
  }

  #wake(at: number, now: number): void {
    if (at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = this.#clock.timer(at - now, this.#look, false);
  }
}

/** Reports danger or loss to each holder, if the instant for it has come. */
export function tellDangerOrLoss(group: RenewalGroup, now: number): void {
  if (group.watchAt > now) return;
  const isLost = now >= group.lostAt;
  if (!isLost) group.dangerTold = true;
  for (const lease of group.leases) {
    // A listener that ran before may have released other leases, or handed them over.
    if (!lease.isManaged) continue;
    if (isLost) lease.checkLoss(now);
    else emit("in-danger", () => ({ ...lease.subject(), remainingMs: lease.remainingMs() }));
  }
}
