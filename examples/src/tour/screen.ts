import { setTimeout as sleep } from "node:timers/promises";

const LANE = 6;
const READING_MS = 300;
const WIDEST = 96;
// Soft tones that can be told apart on light and on dark ground.
const TONES = [36, 33, 35, 34];

export type Mark = "idle" | "waiting" | "dead" | "stopped" | { readonly token: string };

/**
 * The live log. Every process has a lane, and a lane shows the token while its process holds the
 * lock: two tokens in one row would be two holders.
 */
export class Screen {
  readonly #names: readonly string[];
  readonly #marks = new Map<string, Mark>();
  readonly #startedAt = performance.now();
  readonly #silent: boolean;
  readonly #colours: boolean;

  constructor(names: readonly string[], silent: boolean) {
    this.#names = names;
    this.#silent = silent;
    this.#colours = process.stdout.isTTY === true && process.stdout.hasColors();
  }

  mark(name: string, mark: Mark): void {
    this.#marks.set(name, mark);
  }

  say(text = ""): void {
    if (!this.#silent) process.stdout.write(`${text}\n`);
  }

  welcome(): void {
    this.say();
    this.say(`  ${this.paint(1, "Holdfast")}, a tour: real processes, one lock in an SQLite file.`);
  }

  title(text: string, ...explanation: readonly string[]): void {
    this.say();
    this.say(`  ${this.paint(1, text)}`);
    for (const line of explanation) this.say(`  ${this.paint(2, line)}`);
    this.say();
    const lanes = this.#names.map((name, i) => this.paint(TONES[i] ?? 0, name.padStart(LANE)));
    this.say(`  ${" ".repeat(8)}${lanes.join("")}`);
  }

  row(text: string): void {
    const seconds = ((performance.now() - this.#startedAt) / 1_000).toFixed(2);
    const lanes = this.#names.map((name, i) => this.#lane(this.#marks.get(name) ?? "idle", i));
    this.say(`  ${this.paint(2, `${seconds.padStart(6)} s`)}${lanes.join("")}   ${text}`);
  }

  /** Time to read a row, where somebody does. */
  async beat(): Promise<void> {
    if (!this.#silent) await sleep(READING_MS);
  }

  verdict(holds: boolean, text: string): void {
    const [first = "", ...rest] = wrap(text, Math.min(process.stdout.columns ?? 80, WIDEST) - 4);
    this.say(`  ${holds ? this.paint(32, "✓") : this.paint(31, "✗")} ${first}`);
    for (const line of rest) this.say(`    ${line}`);
  }

  paint(colour: number, text: string): string {
    return this.#colours ? `\x1b[${colour}m${text}\x1b[0m` : text;
  }

  #lane(mark: Mark, index: number): string {
    if (typeof mark === "object") return this.paint(TONES[index] ?? 0, mark.token.padStart(LANE));
    const [sign, colour] = {
      idle: ["", 0],
      waiting: ["·", 2],
      dead: ["✗", 31],
      stopped: ["‖", 31],
    }[mark] as [string, number];
    return this.paint(colour, sign.padStart(LANE));
  }
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}
