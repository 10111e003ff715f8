import type { Failed, Granted, Queued, QueueFacet, Unknown } from "../../engine.js";
import { emit } from "../../events.js";
import { type Caller, expectAnswers } from "../calling/call.js";
import type { Timer } from "../runtime/clock.js";
import { GenerationalMap } from "../runtime/generational-map.js";
import type { SentClaim } from "./sent-claim.js";

const MAX_BATCH = 1_000;
// A waiter whose heartbeat is due within half its interval goes along with the ones due now: the
// number of calls then depends on the interval, not on the number of waiters.
const BATCH_AHEAD = 0.5;
const REPEAT_MS = 100;
const SLOWEST_MS = 1_000;

/** "unknown" is a place that the backend has forgotten. */
export type Outcome = Granted | "unknown";

/** Whoever is called leaves the queue in the same breath, so that nobody is called twice. */
export interface Waiter {
  onOutcome(outcome: Outcome): void;
}

/** Sends the heartbeats of all waiters of one engine, in batches, and takes the pushes. */
export class WaiterHeartbeats {
  readonly #caller: Caller;
  readonly #queue: QueueFacet;
  readonly #waiting = new GenerationalMap<string, SentClaim>();
  readonly #stopListening: () => void;
  #beating = false;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(caller: Caller, queue: QueueFacet) {
    this.#caller = caller;
    this.#queue = queue;
    this.#stopListening = queue.onGrant((ref, granted) => {
      this.#waiting.get(ref.grantId)?.waiter?.onOutcome(granted);
    });
  }

  /** Before the claim is sent: a push may overtake the answer to enqueue. */
  add(place: SentClaim, waiter: Waiter): void {
    place.waiter = waiter;
    place.holders = [];
    place.dueAt = Infinity;
    place.failures = 0;
    this.#waiting.add(place.claim.grantId, place);
  }

  queued(place: SentClaim, answer: Queued, startedAt: number): void {
    place.holders = answer.holders;
    place.intervalMs = answer.nextHeartbeatMs;
    place.dueAt = startedAt + answer.nextHeartbeatMs;
    place.failures = 0;
    this.#wake(place.dueAt);
  }

  leave(place: SentClaim): void {
    this.#waiting.delete(place.claim.grantId);
    // What has left must hold nothing: the map's former tables may keep it for a while.
    place.waiter = null;
    if (this.#waiting.size > 0) return;
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  close(): void {
    this.#stopListening();
  }

  async #beat(): Promise<void> {
    this.#timer = null;
    this.#wakeAt = Infinity;
    // One call at a time: a backend that answers slowly must not be asked ever faster.
    if (this.#beating) return;
    this.#beating = true;
    const now = this.#caller.clock.now();
    const due = this.#waiting
      .values()
      .filter((place) => place.dueAt - now <= place.intervalMs * BATCH_AHEAD);
    for (let i = 0; i < due.length; i += MAX_BATCH) await this.#ask(due.slice(i, i + MAX_BATCH));
    this.#beating = false;
    for (const place of this.#waiting.values()) this.#wake(place.dueAt);
  }

  async #ask(batch: readonly SentClaim[]): Promise<void> {
    // One that hangs must not cost the places of those who wait for the next; and how long one
    // waiter would let its own calls take is not for the others to suffer from.
    const timeoutMs = Math.max(SLOWEST_MS, Math.min(...batch.map((place) => place.intervalMs)));
    let startedAt = 0;
    let answers: readonly (Queued | Granted | Unknown | Failed)[];
    try {
      answers = await this.#caller.call(timeoutMs, (call) => {
        startedAt = call.startedAt;
        return this.#queue.heartbeat(
          batch.map((place) => place.claim),
          call,
        );
      });
      expectAnswers(this.#caller, batch.length, answers);
    } catch (error) {
      emit("failed", () => ({ during: "heartbeat", error }));
      for (const place of batch) this.#postpone(place);
      return;
    }
    for (const [i, place] of batch.entries()) {
      // One that was pushed its grant meanwhile, or gave up, has left already.
      if (place.waiter === null) continue;
      const answer = answers[i]!;
      if (answer.kind === "granted") place.waiter.onOutcome(answer);
      else if (answer.kind === "unknown") place.waiter.onOutcome("unknown");
      else if (answer.kind === "queued") this.queued(place, answer, startedAt);
      else this.#postpone(place);
    }
  }

  /** The backend may still know us: the place is kept, and asked about again, ever more slowly. */
  #postpone(place: SentClaim): void {
    const delayMs = Math.min(
      REPEAT_MS * 2 ** place.failures++,
      Math.max(place.intervalMs, REPEAT_MS),
    );
    place.dueAt = this.#caller.clock.now() + delayMs;
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt || this.#beating || at === Infinity) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    const { clock } = this.#caller;
    this.#timer = clock.timer(at - clock.now(), () => void this.#beat(), true);
  }
}
