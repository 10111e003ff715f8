import { AssertionError } from "node:assert";
import { sleep, systemClock } from "../core/runtime/clock.js";

/** Waits in real time. */
export function elapse(ms: number): Promise<void> {
  return sleep(systemClock, ms, undefined);
}

/** The promise's own outcome, or an AssertionError if it does not settle in time. */
export function within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () =>
      reject(new AssertionError({ message: `${what} did not settle within ${ms} ms` }));
    const timer = systemClock.timer(ms, late, true);
    work.then(resolve, reject).finally(() => timer.cancel());
  });
}

/** The outcome of a promise, without throwing. */
export type Settled<T> =
  | { readonly is: "value"; readonly value: T }
  | { readonly is: "error"; readonly error: unknown }
  | { readonly is: "silent" };

export async function outcome<T>(work: Promise<T>, ms: number): Promise<Settled<T>> {
  const settled: Promise<Settled<T>> = work.then(
    (value) => ({ is: "value", value }),
    (error: unknown) => ({ is: "error", error }),
  );
  return new Promise((resolve) => {
    const timer = systemClock.timer(ms, () => resolve({ is: "silent" }), true);
    void settled.then((answer) => {
      timer.cancel();
      resolve(answer);
    });
  });
}

/**
 * A promise and the function that resolves it. Laws use it to decide when a delayed message goes
 * on.
 */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
