const FIRST_BYTES = 256;

/**
 * Writes the records of ZooKeeper's protocol: big-endian, with a length before each variable field.
 */
export class JuteWriter {
  #bytes = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  int(value: number): this {
    this.#length = this.#reserve(4).writeInt32BE(value, this.#length);
    return this;
  }

  long(value: bigint): this {
    this.#length = this.#reserve(8).writeBigInt64BE(value, this.#length);
    return this;
  }

  bool(value: boolean): this {
    this.#length = this.#reserve(1).writeUInt8(value ? 1 : 0, this.#length);
    return this;
  }

  buffer(value: Buffer): this {
    this.int(value.length);
    value.copy(this.#reserve(value.length), this.#length);
    this.#length += value.length;
    return this;
  }

  string(value: string): this {
    return this.buffer(Buffer.from(value));
  }

  strings(values: readonly string[]): this {
    this.int(values.length);
    for (const value of values) this.string(value);
    return this;
  }

  /** The written fields as one packet, which starts with its length. */
  packet(): Buffer {
    const bytes = Buffer.allocUnsafe(this.#length + 4);
    bytes.writeInt32BE(this.#length, 0);
    this.#bytes.copy(bytes, 4, 0, this.#length);
    return bytes;
  }

  #reserve(more: number): Buffer {
    const needed = this.#length + more;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    return this.#bytes;
  }
}

/** Reads one packet. Throws a RangeError if the packet is too short or has a wrong count. */
export class JuteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  int(): number {
    const value = this.#bytes.readInt32BE(this.#at);
    this.#at += 4;
    return value;
  }

  long(): bigint {
    const value = this.#bytes.readBigInt64BE(this.#at);
    this.#at += 8;
    return value;
  }

  bool(): boolean {
    const value = this.#bytes.readUInt8(this.#at);
    if (value > 1) throw new RangeError(`${value} is neither true nor false`);
    this.#at += 1;
    return value === 1;
  }

  /** Throws if the packet does not end here. */
  end(): void {
    if (this.left > 0) throw new RangeError(`${this.left} bytes after the end of an answer`);
  }

  /** The protocol writes null as length -1, which is read as an empty buffer. */
  buffer(): Buffer {
    const length = this.#count(1);
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  string(): string {
    return this.buffer().toString();
  }

  strings(): string[] {
    return Array.from({ length: this.#count(4) }, () => this.string());
  }

  #count(leastBytesEach: number): number {
    const count = this.int();
    if (count === -1) return 0;
    if (count < 0 || count * leastBytesEach > this.left) {
      throw new RangeError(`a count of ${count} with ${this.left} bytes left`);
    }
    return count;
  }
}
