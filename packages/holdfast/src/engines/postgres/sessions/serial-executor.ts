/** Work that must not overlap: each piece begins when the one before it has ended, however it ended. */
export class SerialExecutor {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
