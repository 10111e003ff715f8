/** What a wait needs of an AbortSignal; every AbortSignal is one. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * A Cancellation for the core's own use, one per claim. An AbortController costs as much as all the
 * rest of an uncontended acquire; this costs next to nothing.
 */
export class Canceller implements Cancellation {
  readonly #listeners = new Set<() => void>();
  #aborted = false;
  #reason: unknown = undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  abort(reason?: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.add(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.delete(listener);
  }

  /** Follows another one, until the returned function is called. */
  follow(other: Cancellation | undefined): () => void {
    if (other === undefined) return () => {};
    const onAbort = () => this.abort(other.reason);
    if (other.aborted) onAbort();
    else other.addEventListener("abort", onAbort, { once: true });
    return () => other.removeEventListener("abort", onAbort);
  }
}
