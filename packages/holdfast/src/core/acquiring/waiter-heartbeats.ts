import type { Failed, Granted, Queued, QueueFacet, Unknown } from "../../engine.js";
import { emit } from "../../events.js";
import { type Caller, expectAnswers } from "../calling/call.js";
import type { Timer } from "../runtime/clock.js";
import { GenerationalMap } from "../runtime/generational-map.js";
import type { SentClaim } from "./sent-claim.js";

const MAX_BATCH = 1_000;
// A heartbeat that is due within half its interval is sent with the ones due now. The number of
// calls then depends on the interval, not on the number of waiters.
const BATCH_AHEAD = 0.5;
const REPEAT_MS = 100;
const SLOWEST_MS = 1_000;

/**
 * Sends the heartbeats of all waiters of one engine in batches, and passes pushed grants on. A claim
 * that is told its outcome must leave() at once, so that it is told only once.
 */
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
      this.#waiting.get(ref.grantId)?.onOutcome(granted);
    });
  }

  /** Called before the claim is sent, because a push may overtake the answer to enqueue. */
  add(place: SentClaim): void {
    place.isQueued = true;
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
    place.isQueued = false;
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
    // One call at a time, so that a slow backend does not get more and more calls.
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
    // A batch that hangs must not cost the next batch its places. The timeout does not depend on
    // any one waiter's callTimeoutMs, because all waiters of the batch share it.
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
      // This waiter got its grant by a push, or gave up, during the call.
      if (!place.isQueued) continue;
      const answer = answers[i]!;
      if (answer.kind === "granted" || answer.kind === "unknown") place.onOutcome(answer);
      else if (answer.kind === "queued") this.queued(place, answer, startedAt);
      else this.#postpone(place);
    }
  }

  /** The backend may still know this waiter. Keep the place, and ask again with growing delays. */
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
