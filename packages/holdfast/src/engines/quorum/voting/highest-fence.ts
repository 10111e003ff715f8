const MOST = 4_096;

/** The greatest fence heard of, by resource: the next proposal lies above it. */
export class HighestFence {
  readonly #fences = new Map<string, number>();

  note(resource: string, fence: number): void {
    const last = this.#fences.get(resource) ?? 0;
    if (fence <= last) return;
    // The nodes keep the fences too: a resource that is forgotten here costs one more round trip.
    if (this.#fences.size >= MOST && last === 0) this.#dropOldest();
    this.#fences.set(resource, fence);
  }

  forget(resource: string): void {
    this.#fences.delete(resource);
  }

  of(resource: string): number {
    return this.#fences.get(resource) ?? 0;
  }

  #dropOldest(): void {
    for (const oldest of this.#fences.keys()) {
      this.#fences.delete(oldest);
      return;
    }
  }
}
