import { availableParallelism, cpus, loadavg } from "node:os";
import { hostInstant } from "../../../core/runtime/clock.js";

// Of a server on the same machine 99 answers in 100 come within 0.13 ms, to one who stays awake.
const LONGEST_MS = 0.15;
// Turns come a few µs after each other, unless somebody else is given the processor in between.
const UNDISTURBED_MS = 0.05;
// Who asks again so soon after an answer does nothing else in between.
const AT_ONCE_MS = 1;
// One in a hundred fails on a machine of our own, a few more where others take the host's time.
const WINDOW = 128;
const MOST_FAILED = 12;
// So many want each processor, by the average of the last minute, where it has too much to do.
const TOO_MANY = 1.5;
const LEAST_PARKED = 128;
const MOST_PARKED = 8_192;

/** What the spin needs of its process and machine. */
export interface SpinHost {
  now(): number;
  /** In the next turn of the event loop. */
  soon(callback: () => void): void;
  readonly processors: number;
  /** Whether more than this process want the processors. */
  isCrowded(): boolean;
}

const HOST_PROCESSORS = cpus().length;

const HOST: SpinHost = {
  now: hostInstant,
  soon: (callback) => setImmediate(callback),
  processors: availableParallelism(),
  // Those of the whole host, as the average is.
  isCrowded: () => loadavg()[0]! > TOO_MANY * HOST_PROCESSORS,
};

/**
 * Adaptive spinning: spin first, then park. After a question, the event loop is kept turning for a short
 * time until the answer comes, and only then may the process sleep. A process that sleeps must be woken
 * up again: that takes about as long as a server nearby takes to answer, and nearly as much CPU time as
 * spinning.
 *
 * It spins for callers who do one thing at a time, and only for what they ask right after an answer.
 * A spin fails where the answer does not come within it, or where another process is given the processor
 * meanwhile. Where spins fail too often, or where many processes want the processors, the next 128
 * questions do not spin, then 256, and so on up to 8,192.
 */
export class AdaptiveSpin {
  readonly #host: SpinHost;
  // On a single processor a spin would keep the server from answering.
  readonly #isOfUse: boolean;
  #answeredAt = -Infinity;
  #until = 0;
  #turnedAt = 0;
  #isSpinning = false;
  #isTurning = false;
  #spins = 0;
  #failed = 0;
  #park = 0;
  #parkNext = LEAST_PARKED;

  constructor(host = HOST) {
    this.#host = host;
    this.#isOfUse = host.processors > 1;
  }

  /** Something was asked while nothing else is under way. */
  asked(): void {
    if (!this.#isOfUse) return;
    const now = this.#host.now();
    if (now - this.#answeredAt > AT_ONCE_MS) return;
    if (this.#park > 0) {
      this.#park--;
      return;
    }
    this.#isSpinning = true;
    this.#until = now + LONGEST_MS;
    // Some clients write only now, which takes its time.
    this.#turnedAt = Infinity;
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#host.soon(this.#turn);
  }

  answered(): void {
    this.#answeredAt = this.#host.now();
    if (this.#isSpinning) this.#over();
  }

  readonly #turn = (): void => {
    const now = this.#host.now();
    const isWorthIt = now < this.#until && now - this.#turnedAt < UNDISTURBED_MS;
    this.#turnedAt = now;
    if (this.#isSpinning && !isWorthIt) {
      this.#failed++;
      this.#over();
    }
    this.#isTurning = this.#isSpinning;
    if (this.#isSpinning) this.#host.soon(this.#turn);
  };

  #over(): void {
    this.#isSpinning = false;
    const failsTooOften = this.#failed > MOST_FAILED;
    if (++this.#spins < WINDOW && !failsTooOften) return;
    const isTooMuch = failsTooOften || this.#host.isCrowded();
    if (isTooMuch) this.#park = this.#parkNext;
    this.#parkNext = isTooMuch
      ? Math.min(this.#parkNext * 2, MOST_PARKED)
      : Math.max(this.#parkNext / 2, LEAST_PARKED);
    this.#spins = 0;
    this.#failed = 0;
  }
}
