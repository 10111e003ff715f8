import { availableParallelism } from "node:os";
import { hostInstant } from "../../clock.js";

// A server nearby answers one who stays awake in half of that; one that is farther away never does.
const LONGEST_MS = 0.2;
// Who asks again so soon after an answer does nothing else in between.
const AT_ONCE_MS = 1;
const MOST_LEFT_OUT = 1_024;

/** Where it is kept. */
export interface Post {
  now(): number;
  /** In the next turn of the event loop. */
  soon(callback: () => void): void;
  readonly processors: number;
}

const POST: Post = {
  now: hostInstant,
  soon: (callback) => setImmediate(callback),
  processors: availableParallelism(),
};

/**
 * Keeps the event loop turning while an answer is about to come. A process that goes to sleep must be
 * woken up again: that takes about as long as a server nearby takes to answer, and nearly as much of
 * the processor as staying awake.
 *
 * It is kept for callers who do one thing at a time, and only for what they ask right after an answer.
 * Where answers do not come within it, the next ones are left out: once, twice, and in the end all but
 * one in a thousand.
 */
export class Vigil {
  readonly #post: Post;
  // On a single processor it would keep the server from answering.
  readonly #isOfUse: boolean;
  #answeredAt = -Infinity;
  #until = 0;
  #isKept = false;
  #isTurning = false;
  #leaveOut = 0;
  #leaveOutNext = 1;

  constructor(post = POST) {
    this.#post = post;
    this.#isOfUse = post.processors > 1;
  }

  /** Something was asked while nothing else is under way. */
  asked(): void {
    if (!this.#isOfUse) return;
    const now = this.#post.now();
    if (now - this.#answeredAt > AT_ONCE_MS) return;
    if (this.#leaveOut > 0) {
      this.#leaveOut--;
      return;
    }
    this.#isKept = true;
    this.#until = now + LONGEST_MS;
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#post.soon(this.#turn);
  }

  answered(): void {
    this.#answeredAt = this.#post.now();
    if (this.#isKept) this.#leaveOutNext = 1;
    this.#isKept = false;
  }

  readonly #turn = (): void => {
    if (this.#isKept && this.#post.now() < this.#until) {
      this.#post.soon(this.#turn);
      return;
    }
    this.#isTurning = false;
    if (!this.#isKept) return;
    this.#isKept = false;
    this.#leaveOut = this.#leaveOutNext;
    this.#leaveOutNext = Math.min(this.#leaveOutNext * 2, MOST_LEFT_OUT);
  };
}
