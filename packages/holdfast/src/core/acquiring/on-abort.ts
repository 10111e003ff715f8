interface Subscription {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

const subscriptions = new WeakMap<AbortSignal, Subscription>();

/**
 * Calls back when the signal aborts, until the returned function is called. Any number of waits may
 * share one signal: it carries one listener of ours, because Node warns of a leak at the eleventh.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    let stopped = false;
    queueMicrotask(() => stopped || callback());
    return () => {
      stopped = true;
    };
  }
  const { callbacks, listener } = subscriptions.get(signal) ?? subscribe(signal);
  callbacks.add(callback);
  return () => {
    callbacks.delete(callback);
    if (callbacks.size > 0 || subscriptions.get(signal)?.callbacks !== callbacks) return;
    signal.removeEventListener("abort", listener);
    subscriptions.delete(signal);
  };
}

function subscribe(signal: AbortSignal): Subscription {
  const callbacks = new Set<() => void>();
  const listener = () => {
    subscriptions.delete(signal);
    for (const callback of [...callbacks]) if (callbacks.delete(callback)) callback();
  };
  const subscription = { callbacks, listener };
  subscriptions.set(signal, subscription);
  signal.addEventListener("abort", listener, { once: true });
  return subscription;
}
