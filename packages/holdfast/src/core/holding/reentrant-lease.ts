import { inspect } from "node:util";
import { UsageError } from "../../errors.js";
import type { Lease, RenewOptions } from "./lease.js";

/**
 * A lease that joined the enclosing lease of the same context. Its release leaves the outer one
 * held.
 */
export class ReentrantLease implements Lease {
  readonly #outer: Lease;
  #released = false;

  constructor(outer: Lease) {
    this.#outer = outer;
  }

  get resource() {
    return this.#outer.resource;
  }

  get mode() {
    return this.#outer.mode;
  }

  get label() {
    return this.#outer.label;
  }

  get token() {
    return this.#outer.token;
  }

  get sequencer() {
    return this.#outer.sequencer;
  }

  get signal() {
    return this.#outer.signal;
  }

  get held() {
    return !this.#released && this.#outer.held;
  }

  assertHeld(): void {
    if (this.#released) throw new UsageError(`lease of "${this.resource}" was released already`);
    this.#outer.assertHeld();
  }

  remainingMs(): number {
    return this.#released ? 0 : this.#outer.remainingMs();
  }

  async renew(options?: RenewOptions): Promise<void> {
    this.assertHeld();
    await this.#outer.renew(options);
  }

  async release(): Promise<"released" | "gone"> {
    this.#released = true;
    // An outer lease that was released on purpose does not count as lost.
    return this.#outer.signal.aborted ? "gone" : "released";
  }

  [inspect.custom]() {
    return this.#outer;
  }

  toJSON() {
    return this.#outer;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#released = true;
  }
}
