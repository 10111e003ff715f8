import { availableParallelism, cpus, loadavg } from "node:os";
import { hostInstant } from "../../clock.js";

// Of a server on the same machine 99 answers in 100 come within 0.13 ms, to one who stays awake.
const LONGEST_MS = 0.15;
// Turns come a few µs after each other, unless somebody else is given the processor in between.
const UNDISTURBED_MS = 0.05;
// Who asks again so soon after an answer does nothing else in between.
const AT_ONCE_MS = 1;
// One in a hundred is in vain on a machine of our own, a few more where others take the host's time.
const LOOKED_AT = 128;
const MOST_IN_VAIN = 12;
// So many want each processor, by the average of the last minute, where it has too much to do.
const TOO_MANY = 1.5;
const LEAST_LEFT_OUT = 128;
const MOST_LEFT_OUT = 8_192;

/** Where it is kept. */
export interface Post {
  now(): number;
  /** In the next turn of the event loop. */
  soon(callback: () => void): void;
  readonly processors: number;
  /** Whether more than this process want the processors. */
  isCrowded(): boolean;
}

const HOST_PROCESSORS = cpus().length;

const POST: Post = {
  now: hostInstant,
  soon: (callback) => setImmediate(callback),
  processors: availableParallelism(),
  // Those of the whole host, as the average is.
  isCrowded: () => loadavg()[0]! > TOO_MANY * HOST_PROCESSORS,
};

/**
 * Keeps the event loop turning while an answer is about to come. A process that goes to sleep must be
 * woken up again: that takes about as long as a server nearby takes to answer, and nearly as much of
 * the processor as staying awake.
 *
 * It is kept for callers who do one thing at a time, and only for what they ask right after an answer.
 * It is in vain where the answer does not come within it, or where others are given the processor
 * meanwhile. Where that happens too often, or where many want the processors and would make better use
 * of them, the next 128 questions are left out, then 256, and so on up to 8,192.
 */
export class Vigil {
  readonly #post: Post;
  // On a single processor it would keep the server from answering.
  readonly #isOfUse: boolean;
  #answeredAt = -Infinity;
  #until = 0;
  #turnedAt = 0;
  #isKept = false;
  #isTurning = false;
  #lookedAt = 0;
  #inVain = 0;
  #leaveOut = 0;
  #leaveOutNext = LEAST_LEFT_OUT;

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
    // Some clients write only now, which takes its time.
    this.#turnedAt = Infinity;
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#post.soon(this.#turn);
  }

  answered(): void {
    this.#answeredAt = this.#post.now();
    if (this.#isKept) this.#over();
  }

  readonly #turn = (): void => {
    const now = this.#post.now();
    const isWorthIt = now < this.#until && now - this.#turnedAt < UNDISTURBED_MS;
    this.#turnedAt = now;
    if (this.#isKept && !isWorthIt) {
      this.#inVain++;
      this.#over();
    }
    this.#isTurning = this.#isKept;
    if (this.#isKept) this.#post.soon(this.#turn);
  };

  #over(): void {
    this.#isKept = false;
    const isInVain = this.#inVain > MOST_IN_VAIN;
    if (++this.#lookedAt < LOOKED_AT && !isInVain) return;
    const isTooMuch = isInVain || this.#post.isCrowded();
    if (isTooMuch) this.#leaveOut = this.#leaveOutNext;
    this.#leaveOutNext = isTooMuch
      ? Math.min(this.#leaveOutNext * 2, MOST_LEFT_OUT)
      : Math.max(this.#leaveOutNext / 2, LEAST_LEFT_OUT);
    this.#lookedAt = 0;
    this.#inVain = 0;
  }
}
