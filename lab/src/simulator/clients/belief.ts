/**
 * How long a holder believes that it has its grant, by its own clock. The simulator does not run
 * the core, so this repeats the core's rules. A holder that believes longer is wrong whatever the
 * nodes do.
 */
export class Belief {
  readonly #drift: number;
  /** The ttl that the next renewal asks for. */
  ttlMs: number;
  until: number;

  constructor(since: number, ttlMs: number, drift: number) {
    this.#drift = drift;
    this.ttlMs = ttlMs;
    this.until = this.#endOf(since, ttlMs);
  }

  /** Called before a renewal is sent. A shorter ttl counts from then on. */
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
