const FIELDS = 4;
const CHUNK = 16_384;
const MAX_SECTIONS = 1_000_000;

export interface Section {
  readonly waiter: number;
  readonly askedAt: number;
  readonly enteredAt: number;
  readonly leftAt: number;
}

/**
 * Every critical section of one process: when it was asked for, entered and left. The log is
 * numbers in typed arrays, so it costs almost nothing and can be sent between processes.
 */
export class SectionLog {
  readonly #chunks: Float64Array[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get full(): boolean {
    return this.#length >= MAX_SECTIONS;
  }

  add(waiter: number, askedAt: number, enteredAt: number, leftAt: number): void {
    const at = (this.#length++ % CHUNK) * FIELDS;
    if (at === 0) this.#chunks.push(new Float64Array(CHUNK * FIELDS));
    const chunk = this.#chunks[this.#chunks.length - 1]!;
    chunk[at] = waiter;
    chunk[at + 1] = askedAt;
    chunk[at + 2] = enteredAt;
    chunk[at + 3] = leftAt;
  }

  pack(): Float64Array {
    const packed = new Float64Array(this.#length * FIELDS);
    for (const [i, chunk] of this.#chunks.entries()) {
      const from = i * CHUNK * FIELDS;
      packed.set(chunk.subarray(0, packed.length - from), from);
    }
    return packed;
  }
}

export function unpack(packed: Float64Array): Section[] {
  return Array.from({ length: packed.length / FIELDS }, (_, i) => {
    const [waiter, askedAt, enteredAt, leftAt] = packed.subarray(i * FIELDS, (i + 1) * FIELDS);
    return { waiter: waiter!, askedAt: askedAt!, enteredAt: enteredAt!, leftAt: leftAt! };
  });
}
