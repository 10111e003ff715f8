interface Following {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const followings = new WeakMap<AbortSignal, Following>();

/**
 * Calls back when the signal aborts, until the returned function is called. However many waits share
 * one signal, it carries one listener of ours: Node warns of a leak at the eleventh.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
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

function follow(signal: AbortSignal): Following {
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
