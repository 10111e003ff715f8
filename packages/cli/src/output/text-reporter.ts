import type { Lease, LeaseLostError, ResourceView } from "holdfast";
import { showDuration } from "../input/duration.js";
import { printable } from "./printable.js";
import type { ReleaseReport, Reporter } from "./reporter.js";

const ERASE_LINE = "\r\x1b[2K";

/** Sentences for people. On a terminal one line is updated; elsewhere each change is a new line. */
export class TextReporter implements Reporter {
  readonly #label: string;
  readonly #quiet: boolean;
  readonly #live = process.stderr.isTTY === true;
  readonly #colours = process.stderr.isTTY === true && process.stderr.hasColors();
  #lastWait = "";
  #lossTold = false;
  #lineOpen = false;

  /** The label is how we find our own place in the queue. */
  constructor(label: string, quiet: boolean) {
    this.#label = label;
    this.#quiet = quiet;
  }

  waiting(view: ResourceView, waitedMs: number): void {
    if (this.#quiet) return;
    const what = printable(`waiting for "${view.resource}", ${whom(view, this.#label)}`);
    if (!this.#live) {
      if (what !== this.#lastWait) this.#say(what);
    } else {
      // Only one row can be erased, so the line must not wrap.
      const line = `holdfast: ${what}, ${showDuration(waitedMs)} so far`;
      const columns = (process.stderr.columns ?? 80) - 1;
      const cut = line.length > columns ? `${line.slice(0, columns - 1)}…` : line;
      process.stderr.write(ERASE_LINE + this.#paint(2, cut));
      this.#lineOpen = true;
    }
    this.#lastWait = what;
  }

  acquired(lease: Lease, waitedMs: number): void {
    // Without a wait, a reader learns nothing from this.
    if (this.#lastWait === "") return;
    const token = `token ${lease.token}`;
    const got = `got "${printable(lease.resource)}" after ${showDuration(waitedMs)} (${token})`;
    this.#say(this.#paint(32, got));
  }

  lost(error: LeaseLostError, killInMs: number): void {
    this.#lossTold = true;
    // Where the grant is gone at the backend, another holder may have the lock already.
    const next =
      killInMs > 0 ? `SIGTERM, and SIGKILL in ${showDuration(killInMs)}` : "SIGKILL at once";
    this.#tell(31, `${printable(error.message)}; the command gets ${next}`);
  }

  released({ resource, outcome }: ReleaseReport): void {
    if (outcome !== "gone" || this.#lossTold) return;
    this.#tell(31, `"${printable(resource)}" was lost before the command ended`);
  }

  warned(message: string): void {
    if (!this.#quiet) this.#say(message);
  }

  failed({ message }: { readonly message: string }): void {
    this.#tell(31, message);
  }

  /** Erases the line about waiting before something else is written to the terminal. */
  #close(): void {
    if (this.#lineOpen) process.stderr.write(ERASE_LINE);
    this.#lineOpen = false;
  }

  #say(text: string): void {
    this.#close();
    process.stderr.write(`holdfast: ${text}\n`);
  }

  /** Failures are shown with --quiet too. */
  #tell(colour: number, text: string): void {
    this.#say(this.#paint(colour, text));
  }

  #paint(colour: number, text: string): string {
    return this.#colours ? `\x1b[${colour}m${text}\x1b[0m` : text;
  }
}

function whom({ resource, holders, waiters, closedMs }: ResourceView, label: string): string {
  const held = holders.map((holder) => `${holder.label} (token ${holder.token})`).join(", ");
  const who =
    held !== ""
      ? `held by ${held}`
      : closedMs > 0
        ? `closed by its lock-delay for ${showDuration(closedMs)} more`
        : "nobody holds it";
  // A label chosen by hand may be in the queue more than once. Then our place is not known.
  const own = waiters.filter((waiter) => waiter.label === label);
  const before = own.length === 1 ? own[0]!.position : 0;
  const place = before > 0 ? `, ${before} before us in the queue` : "";
  return who + place + (startedByHolder(resource, holders) ? OWN_PARENT : "");
}

const OWN_PARENT = "; that run started this one, so each waits for the other";

function startedByHolder(resource: string, holders: ResourceView["holders"]): boolean {
  const { HOLDFAST_LOCK, HOLDFAST_TOKEN } = process.env;
  return (
    HOLDFAST_LOCK === resource && holders.some(({ token }) => String(token) === HOLDFAST_TOKEN)
  );
}
