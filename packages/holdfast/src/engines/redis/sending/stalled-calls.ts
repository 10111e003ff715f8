import { systemClock } from "../../../core/runtime/clock.js";

const STALLED_MS = 1_000;
const LONGEST_PAUSE_MS = 8_000;

interface Call {
  readonly key: string;
  readonly dueAt: number;
}

/**
 * Notices calls that get no answer. A Cluster primary that hangs keeps its connections, so a client
 * goes on asking it after another node has taken its place. Then the client must ask again who
 * serves the slots. While that does not help, it is repeated after longer and longer pauses.
 */
export class StalledCalls {
  readonly #onStalled: (key: string) => void;
  /** Oldest first. */
  readonly #pending = new Set<Call>();
  #isWatching = false;
  #pauseMs = STALLED_MS;

  constructor(onStalled: (key: string) => void) {
    this.#onStalled = onStalled;
  }

  /** busyMs: how long the answer may take even if nothing is wrong. */
  watch<T>(key: string, answer: Promise<T>, busyMs = 0): Promise<T> {
    const call = { key, dueAt: systemClock.now() + busyMs + STALLED_MS };
    const end = () => void this.#pending.delete(call);
    this.#pending.add(call);
    answer.then(end, end);
    // One timer for all calls. It repeats as long as there are calls.
    if (!this.#isWatching) this.#lookIn(STALLED_MS);
    return answer;
  }

  close(): void {
    this.#pending.clear();
  }

  #lookIn(ms: number): void {
    this.#isWatching = true;
    systemClock.timer(ms, () => this.#look(), false);
  }

  #look(): void {
    const [oldest] = this.#pending;
    this.#isWatching = false;
    if (oldest === undefined) {
      this.#pauseMs = STALLED_MS;
      return;
    }
    const leftMs = oldest.dueAt - systemClock.now();
    if (leftMs > 0) {
      this.#pauseMs = STALLED_MS;
      this.#lookIn(leftMs);
      return;
    }
    this.#onStalled(oldest.key);
    this.#lookIn(this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}
