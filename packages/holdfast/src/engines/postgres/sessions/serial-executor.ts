/**
 * Runs tasks that must not overlap. Each begins when the one before it has settled, even if it
 * failed.
 */
export class SerialExecutor {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}
