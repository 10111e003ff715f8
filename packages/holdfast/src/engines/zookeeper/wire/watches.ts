// A request may have a megabyte. The path of a lock can take one to three kilobytes.
const BATCH_BYTES = 200_000;

/**
 * deleted: the node is gone, and earlier events of watched nodes were reported before this one.
 * changed: the node was changed or deleted, and its order among other events is unknown.
 */
export type WatchEvent = "deleted" | "changed";

export type WatchListener = (event: WatchEvent) => void;

/** The listeners of each node. Each is called once, and then reads the node again. */
export class Watches {
  readonly #listeners = new Map<string, Set<WatchListener>>();

  get size(): number {
    return this.#listeners.size;
  }

  add(path: string, listener: WatchListener): void {
    const listeners = this.#listeners.get(path);
    if (listeners === undefined) this.#listeners.set(path, new Set([listener]));
    else listeners.add(listener);
  }

  /** Returns whether this was the last listener of the path. */
  drop(path: string, listener: WatchListener): boolean {
    const listeners = this.#listeners.get(path);
    if (listeners?.delete(listener) !== true || listeners.size > 0) return false;
    return this.#listeners.delete(path);
  }

  fire(path: string, event: WatchEvent): void {
    const listeners = this.#listeners.get(path);
    this.#listeners.delete(path);
    for (const listener of listeners ?? []) listener(event);
  }

  fireAll(): void {
    for (const path of [...this.#listeners.keys()]) this.fire(path, "changed");
  }

  /** All paths, in batches that each fit into one request. */
  *batches(): Generator<string[]> {
    let batch: string[] = [];
    let bytes = 0;
    for (const path of this.#listeners.keys()) {
      if (bytes > BATCH_BYTES) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      batch.push(path);
      bytes += Buffer.byteLength(path) + 4;
    }
    if (batch.length > 0) yield batch;
  }
}
