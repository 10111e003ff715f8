import { emit } from "../../events.js";
import { randomByte } from "../holding/grant-id.js";
import type { Clock, Timer } from "../runtime/clock.js";
import { DeadlineHeap } from "./deadline-heap.js";
import type { RenewalGroup } from "./renewal-group.js";

// However far the next renewal is, the clocks are read this often while anything is held, so that a
// suspended machine or a jump of the wall clock is noticed within a second.
const LOOK_EVERY_MS = 1_000;

/** When each group is to be looked at next, and the one timer for all of them. */
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

  /** Takes out the first group to be looked at, if that is by an instant that depends on the group. */
  takeFirst(byWhen: (group: RenewalGroup) => number): RenewalGroup | undefined {
    const group = this.#heap.first;
    if (group === undefined || this.#heap.earliest > byWhen(group)) return undefined;
    this.#heap.delete(group);
    return group;
  }

  /** Decides when a new or renewed group is renewed next: never later than was decided before. */
  plan(group: RenewalGroup): void {
    // A jitter of a tenth keeps processes that started together from renewing together for ever.
    const at = group.since + group.renewEveryMs * (1 - randomByte() / 2_560);
    group.renewAt = Math.min(group.renewAt, at);
  }

  /** Puts a managed group where its instants say. */
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

  /** No timer is set until set() or resume() is called. */
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

/** Tells each holder of danger or loss, where its instant has come. */
export function tellDangerOrLoss(group: RenewalGroup, now: number): void {
  if (group.watchAt > now) return;
  const isLost = now >= group.lostAt;
  if (!isLost) group.dangerTold = true;
  for (const lease of group.leases) {
    // A listener that was told before may have released other leases, or passed them on.
    if (!lease.isManaged) continue;
    if (isLost) lease.checkLoss(now);
    else emit("in-danger", () => ({ ...lease.subject(), remainingMs: lease.remainingMs() }));
  }
}
