import { Agenda } from "./agenda.js";
import type { Clock, Timer } from "./clock.js";
import { isKept, leasesOf, type Ward } from "./company.js";
import { emit } from "./events.js";
import type { Grant } from "./grant.js";
import { randomByte } from "./grant-id.js";

// However far the next renewal is, the clocks are looked at this often while anything is held, so
// that a suspended machine or a jump of the wall clock is noticed within a second.
const LOOK_EVERY_MS = 1_000;

/** When each ward is to be looked at next, and the one timer that sees to it. */
export class Plans {
  readonly #clock: Clock;
  readonly #look: () => void;
  /** A hundred thousand leases must not cost a walk each time. */
  readonly #agenda = new Agenda<Ward>();
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock;
    this.#look = look;
  }

  get wards(): Ward[] {
    return this.#agenda.items();
  }

  /** Takes out the one that is to be looked at first, if that is by an instant that depends on it. */
  takeFirst(byWhen: (ward: Ward) => number): Ward | undefined {
    const ward = this.#agenda.first;
    if (ward === undefined || this.#agenda.earliest > byWhen(ward)) return undefined;
    this.#agenda.delete(ward);
    return ward;
  }

  /** After a renewal, or for a new lease. Never later than it was planned before. */
  plan({ leader }: Ward): void {
    // A jitter of a tenth keeps processes that started together from renewing together for ever.
    const at = leader.since + leader.renewEveryMs * (1 - randomByte() / 2_560);
    leader.renewAt = Math.min(leader.renewAt, at);
  }

  schedule(ward: Ward, now: number): void {
    if (!isKept(ward)) return;
    const { watchAt, renewing, wantsRenewal, renewAt } = ward.leader;
    const at = renewing === null && wantsRenewal ? Math.min(watchAt, renewAt) : watchAt;
    this.#agenda.set(ward, at);
    this.#wake(Math.min(at, now + LOOK_EVERY_MS), now);
  }

  /** It is a ward of its own from now on, and not scheduled yet. */
  part(grant: Grant): void {
    const { company } = grant;
    if (company === null) return;
    company.leave(grant);
    if (!isKept(company)) this.drop(company);
  }

  drop(ward: Ward): void {
    this.#agenda.delete(ward);
    if (this.#agenda.size === 0) this.rest();
  }

  /** Whatever the timer was set for. */
  rest(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  /** After a look, which has let the timer rest. */
  goOn(now: number): void {
    if (this.#agenda.size > 0)
      this.#wake(Math.min(this.#agenda.earliest, now + LOOK_EVERY_MS), now);
  }

  #wake(at: number, now: number): void {
    if (at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = this.#clock.timer(at - now, this.#look, false);
  }
}

/** Tells danger or loss where it has come. */
export function watch(ward: Ward, now: number): void {
  const { leader } = ward;
  if (leader.watchAt > now) return;
  const isLost = now >= leader.lostAt;
  if (!isLost) leader.inDangerTold = true;
  for (const lease of leasesOf(ward)) {
    // Whoever was told before may have released others, or passed them on.
    if (!lease.isKept) continue;
    if (isLost) lease.noticeLoss(now);
    else emit("in-danger", () => ({ ...lease.subject(), remainingMs: lease.remainingMs() }));
  }
}
