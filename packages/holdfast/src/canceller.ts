/** What a wait needs of an AbortSignal; every AbortSignal is one. */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

interface Following {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const followings = new WeakMap<Cancellation, Following>();

/**
 * Calls back when the signal aborts, until the returned function is called. However many waits share
 * one signal, it carries one listener of ours: Node warns of a leak at the eleventh.
 */
export function onAbort(signal: Cancellation, callback: () => void): () => void {
  if (signal.aborted) {
    let stopped = false;
    queueMicrotask(() => stopped || callback());
    return () => {
      stopped = true;
    };
  }
  const { callbacks, listener } = followings.get(signal) ?? follow(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || followings.get(signal)?.callbacks !== callbacks) return;
    signal.removeEventListener("abort", listener);
    followings.delete(signal);
  };
}

function follow(signal: Cancellation): Following {
  const callbacks = new Set<() => void>();
  const listener = () => {
    followings.delete(signal);
    for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
  };
  const following = { callbacks, listener };
  followings.set(signal, following);
  signal.addEventListener("abort", listener, { once: true });
  return following;
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
    if (!other.aborted) return onAbort(other, () => this.abort(other.reason));
    this.abort(other.reason);
    return () => {};
  }
}
