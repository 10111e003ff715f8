import type { WriteStream } from "node:tty";

const CODES = { bold: 1, dim: 2, red: 31, green: 32, cyan: 36 } as const;
const SILENT_MS = 2_000;

export type Colour = keyof typeof CODES;
export type Paint = (colour: Colour, text: string) => string;

/** Colours on a terminal, plain text everywhere else. */
export function paintFor(stream: WriteStream): Paint {
  const coloured = stream.isTTY === true && !process.env.NO_COLOR;
  return (colour, text) => (coloured ? `\x1b[${CODES[colour]}m${text}\x1b[0m` : text);
}

/**
 * Shows what is being measured, once the run takes a while. On a terminal one line is rewritten.
 * Elsewhere a line is printed from time to time, so that a log stays short.
 */
export class Progress {
  readonly #stream: WriteStream;
  readonly #startedAt = performance.now();
  #saidAt = -Infinity;

  constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  say(what: string, done: number, all: number): void {
    const now = performance.now();
    const text = `${done + 1} of ${all} · ${what}`;
    if (this.#stream.isTTY) {
      this.#stream.write(`\r\x1b[2K${text.slice(0, (this.#stream.columns ?? 80) - 1)}`);
    } else if (now - this.#startedAt >= SILENT_MS && now - this.#saidAt >= SILENT_MS) {
      this.#saidAt = now;
      this.#stream.write(`${text}\n`);
    }
  }

  end(): void {
    if (this.#stream.isTTY) this.#stream.write("\r\x1b[2K");
  }
}
