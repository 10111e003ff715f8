/**
 * How long a holder believes in its grant, in its own time: by the rules of the core, which the
 * simulator does not run. A lease that lives by more than this would be wrong whatever nodes do.
 */
export class Belief {
  readonly #drift: number;
  /** What the next renewal asks for. */
  ttlMs: number;
  until: number;

  constructor(since: number, ttlMs: number, drift: number) {
    this.#drift = drift;
    this.ttlMs = ttlMs;
    this.until = this.#endOf(since, ttlMs);
  }

  /** Before a renewal is sent: one for a shorter ttl counts from then on. */
  expect(since: number, ttlMs: number): void {
    this.until = Math.min(this.until, this.#endOf(since, ttlMs));
  }

  confirm(since: number, ttlMs: number): void {
    this.ttlMs = ttlMs;
    this.until = this.#endOf(since, ttlMs);
  }

  #endOf(since: number, ttlMs: number): number {
    return since + ttlMs * (1 - this.#drift);
  }
}
