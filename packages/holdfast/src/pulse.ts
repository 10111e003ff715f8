import { type Backend, expectAnswers } from "./backend.js";
import type { Timer } from "./clock.js";
import type {
  Failed,
  Granted,
  GrantRef,
  HolderView,
  Queued,
  QueueFacet,
  Unknown,
} from "./engine.js";
import { emit } from "./events.js";
import { Registry } from "./registry.js";

const MAX_BATCH = 1_000;
// A waiter whose heartbeat is due within half its interval goes along with the ones due now: the
// number of calls then depends on the interval, not on the number of waiters.
const BATCH_AHEAD = 0.5;
const REPEAT_MS = 100;
const SLOWEST_MS = 1_000;

const NOBODY: Waiter = { called: () => {} };

/** "unknown" is a place that the backend has forgotten. */
export type Outcome = Granted | "unknown";

/** Whoever is called leaves the line in the same breath, so that nobody is called twice. */
export interface Waiter {
  called(outcome: Outcome): void;
}

/** One waiter's place in the backend's line, as this process sees it. */
export class Place {
  readonly ref: GrantRef;
  waiter: Waiter;
  holders: readonly HolderView[] = [];
  dueAt = Infinity;
  intervalMs = 0;
  failures = 0;

  constructor(ref: GrantRef, waiter: Waiter) {
    this.ref = ref;
    this.waiter = waiter;
  }
}

/** Sends the heartbeats of all waiters of one engine, in batches, and takes the pushes. */
export class Pulse {
  readonly #backend: Backend;
  readonly #queue: QueueFacet;
  readonly #places = new Registry<string, Place>();
  readonly #stopListening: () => void;
  #beating = false;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(backend: Backend, queue: QueueFacet) {
    this.#backend = backend;
    this.#queue = queue;
    this.#stopListening = queue.onGrant((ref, granted) => {
      this.#places.get(ref.grantId)?.waiter.called(granted);
    });
  }

  /** Before the claim is sent: a push may overtake the answer to enqueue. */
  enrol(ref: GrantRef, waiter: Waiter): Place {
    const place = new Place(ref, waiter);
    this.#places.add(ref.grantId, place);
    return place;
  }

  queued(place: Place, answer: Queued, startedAt: number): void {
    place.holders = answer.holders;
    place.intervalMs = answer.nextHeartbeatMs;
    place.dueAt = startedAt + answer.nextHeartbeatMs;
    place.failures = 0;
    this.#wake(place.dueAt);
  }

  leave(place: Place): void {
    this.#places.delete(place.ref.grantId);
    // What has left must hold nothing: the map's former tables may keep it for a while.
    place.waiter = NOBODY;
    if (this.#places.size > 0) return;
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
    const now = this.#backend.clock.now();
    const due = this.#places
      .values()
      .filter((place) => place.dueAt - now <= place.intervalMs * BATCH_AHEAD);
    for (let i = 0; i < due.length; i += MAX_BATCH) await this.#ask(due.slice(i, i + MAX_BATCH));
    this.#beating = false;
    for (const place of this.#places.values()) this.#wake(place.dueAt);
  }

  async #ask(batch: readonly Place[]): Promise<void> {
    // One that hangs must not cost the places of those who wait for the next; and how long one
    // waiter would let its own calls take is not for the others to suffer from.
    const timeoutMs = Math.max(SLOWEST_MS, Math.min(...batch.map((place) => place.intervalMs)));
    let startedAt = 0;
    let answers: readonly (Queued | Granted | Unknown | Failed)[];
    try {
      answers = await this.#backend.call(timeoutMs, (call) => {
        startedAt = call.startedAt;
        return this.#queue.heartbeat(
          batch.map((place) => place.ref),
          call,
        );
      });
      expectAnswers(this.#backend, batch.length, answers);
    } catch (error) {
      emit("failed", () => ({ during: "heartbeat", error }));
      for (const place of batch) this.#postpone(place);
      return;
    }
    for (const [i, place] of batch.entries()) {
      // One that was pushed its grant meanwhile, or gave up, has left already.
      if (this.#places.get(place.ref.grantId) !== place) continue;
      const answer = answers[i]!;
      if (answer.kind === "granted") place.waiter.called(answer);
      else if (answer.kind === "unknown") place.waiter.called("unknown");
      else if (answer.kind === "queued") this.queued(place, answer, startedAt);
      else this.#postpone(place);
    }
  }

  /** The backend may still know us: the place is kept, and asked about again, ever more slowly. */
  #postpone(place: Place): void {
    const delayMs = Math.min(
      REPEAT_MS * 2 ** place.failures++,
      Math.max(place.intervalMs, REPEAT_MS),
    );
    place.dueAt = this.#backend.clock.now() + delayMs;
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt || this.#beating || at === Infinity) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    const { clock } = this.#backend;
    this.#timer = clock.timer(at - clock.now(), () => void this.#beat(), true);
  }
}
