// A request may take a megabyte; names of locks take a kilobyte or three each.
const BATCH_BYTES = 200_000;

/**
 * deleted: the node is gone, and whatever was watched and happened before that was told before.
 * changed: something happened to it, and the order of it is not known.
 */
export type WatchEvent = "deleted" | "changed";

export type WatchListener = (event: WatchEvent) => void;

/** Who wants to hear of which node. Each is called once: what it does then is look again. */
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

  /** Whether that was the last one for the path. */
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

  /** All paths, in batches that fit into a request each. */
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
