export const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

export type ForwardedSignal = (typeof FORWARDED)[number];

/** Handles signals from the start and passes them to the current `receive`. */
export class Signals implements Disposable {
  /** Before the command starts, a signal ends the wait. Then the run replaces this function. */
  receive: (signal: ForwardedSignal) => void;
  readonly #listener = (signal: NodeJS.Signals) => this.receive(signal as ForwardedSignal);

  constructor(receive: (signal: ForwardedSignal) => void) {
    this.receive = receive;
    for (const signal of FORWARDED) process.on(signal, this.#listener);
  }

  [Symbol.dispose](): void {
    for (const signal of FORWARDED) process.off(signal, this.#listener);
  }
}
