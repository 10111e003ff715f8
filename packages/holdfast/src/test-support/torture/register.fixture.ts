export interface Asked {
  readonly id: number;
  readonly verb: "read" | "write";
  readonly token: string;
  readonly value: number;
}

export interface RegisterAnswer {
  readonly id: number;
  /** Null for a stale token. */
  readonly value: number | null;
}

/** A number that only the newest holder can write: a read registers a token, a write checks it. */
export class TokenRegister {
  readonly wrongs: string[] = [];
  refused = 0;
  #mark = 0n;
  #value = 0;

  get value(): number {
    return this.#value;
  }

  answer({ id, verb, token, value }: Asked): RegisterAnswer {
    const shown = BigInt(token);
    const stale = verb === "read" ? shown < this.#mark : shown !== this.#mark;
    if (stale) {
      this.refused++;
      return { id, value: null };
    }
    if (verb === "read") {
      this.#mark = shown;
      return { id, value: this.#value };
    }
    if (value !== this.#value + 1) {
      this.wrongs.push(`token ${token} wrote ${value} over ${this.#value}, which it had not seen`);
    }
    this.#value = value;
    return { id, value };
  }
}
