export const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const;

export type ForwardedSignal = (typeof FORWARDED)[number];

/** Takes signals from the first moment on, for whoever is in charge at the time. */
export class Signals implements Disposable {
  /** Replaced when the command starts: before that, a signal ends the wait. */
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
