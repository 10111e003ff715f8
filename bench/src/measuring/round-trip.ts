import { spawn } from "node:child_process";
import { once } from "node:events";
import { instant, within } from "./instant.js";

const ECHO = "process.stdin.pipe(process.stdout)";
const ANSWER_TIMEOUT_MS = 5_000;

export async function timed(roundTrip: () => Promise<unknown>): Promise<number> {
  const startedAt = instant();
  await within(ANSWER_TIMEOUT_MS, "a round trip", roundTrip());
  return instant() - startedAt;
}

/** Sends one byte to another process and back: the least that two processes need to agree. */
export class Echo implements AsyncDisposable {
  // The child ends when its input ends, that is, with this process.
  readonly #child = spawn(process.execPath, ["-e", ECHO], { stdio: ["pipe", "pipe", "inherit"] });
  readonly #closed = once(this.#child, "close");

  async roundTrip(): Promise<void> {
    const back = once(this.#child.stdout, "data");
    this.#child.stdin.write("x");
    await back;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#closed;
  }
}
