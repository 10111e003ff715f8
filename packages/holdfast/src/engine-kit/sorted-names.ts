// Sorting this many names takes a millisecond or two.
const RUN = 4_096;

/**
 * The names at one moment, in order. Sorting a hundred thousand names at once would block the
 * process for a tenth of a second, so they are sorted in runs, and the runs are merged as far as a
 * caller reads.
 */
export class SortedNames {
  readonly #runs: readonly (readonly string[])[];

  private constructor(runs: readonly (readonly string[])[]) {
    this.#runs = runs;
  }

  static async of(names: Iterable<string>): Promise<SortedNames> {
    const all = [...names];
    const runs: string[][] = [];
    for (let i = 0; i < all.length; i += RUN) {
      if (i > 0) await new Promise<void>((turned) => setImmediate(turned));
      runs.push(all.slice(i, i + RUN).sort());
    }
    return new SortedNames(runs);
  }

  *after(cursor: string | null): Generator<string, void, undefined> {
    const heads = this.#runs.map((run) => ({
      run,
      at: cursor === null ? 0 : countTo(run, cursor),
    }));
    for (;;) {
      let least: (typeof heads)[number] | null = null;
      for (const head of heads) {
        if (head.at === head.run.length) continue;
        if (least === null || head.run[head.at]! < least.run[least.at]!) least = head;
      }
      if (least === null) return;
      yield least.run[least.at++]!;
    }
  }
}

/** How many names of a sorted run are less than or equal to this name. */
function countTo(run: readonly string[], name: string): number {
  let [low, high] = [0, run.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (run[middle]! <= name) low = middle + 1;
    else high = middle;
  }
  return low;
}
