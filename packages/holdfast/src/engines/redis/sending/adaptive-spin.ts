import { availableParallelism, cpus, loadavg } from "node:os";
import { hostInstant } from "../../../core/runtime/clock.js";

// From a server on the same machine 99 of 100 answers come within 0.13 ms, if the process stays
// awake.
const LONGEST_MS = 0.15;
// The event loop turns every few µs, unless another process gets the processor in between.
const UNDISTURBED_MS = 0.05;
// A caller that asks again so soon after an answer does nothing else in between.
const AT_ONCE_MS = 1;
// On a dedicated machine one spin of 100 fails; on a shared host a few more do.
const WINDOW = 128;
const MOST_FAILED = 12;
// The load average of the last minute, for each processor, above which the host is too busy to
// spin.
const TOO_MANY = 1.5;
const LEAST_PARKED = 128;
const MOST_PARKED = 8_192;

/** What the spin needs from its process and machine. */
export interface SpinHost {
  now(): number;
  /** Calls back in the next turn of the event loop. */
  soon(callback: () => void): void;
  readonly processors: number;
  /** Whether other processes need the processors. */
  isCrowded(): boolean;
}

const HOST_PROCESSORS = cpus().length;

const HOST: SpinHost = {
  now: hostInstant,
  soon: (callback) => setImmediate(callback),
  processors: availableParallelism(),
  // The load average is that of the whole host, so its processors count.
  isCrowded: () => loadavg()[0]! > TOO_MANY * HOST_PROCESSORS,
};

/**
 * Adaptive spinning: spin first, then park. After a request, the event loop keeps turning for a
 * short time until the answer comes; only after that may the process sleep. Waking a process that
 * sleeps takes about as long as a server nearby takes to answer, and nearly as much CPU time as
 * spinning.
 *
 * It spins for callers that do one thing at a time, and only for a request right after an answer. A
 * spin fails if the answer does not come in time, or if another process gets the processor during
 * the spin. If spins fail too often, or if many processes need the processors, the next 128
 * requests do not spin, the next time 256, and so on up to 8,192.
 */
export class AdaptiveSpin {
  readonly #host: SpinHost;
  // On a single processor a spin would keep the server from running.
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

  /** A request was sent while no other is in progress. */
  onRequest(): void {
    if (!this.#isOfUse) return;
    const now = this.#host.now();
    if (now - this.#answeredAt > AT_ONCE_MS) return;
    if (this.#park > 0) {
      this.#park--;
      return;
    }
    this.#isSpinning = true;
    this.#until = now + LONGEST_MS;
    // Some clients write to the socket only after this, so the first turn may take longer.
    this.#turnedAt = Infinity;
    if (this.#isTurning) return;
    this.#isTurning = true;
    this.#host.soon(this.#turn);
  }

  onAnswer(): void {
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
