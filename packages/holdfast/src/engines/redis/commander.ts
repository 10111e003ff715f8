import { createHash } from "node:crypto";
import type { Seam } from "./client.js";
import { explain, isForbidden, isMissingScript } from "./failure.js";
import { scripts } from "./scripts.gen.js";

const MAX_BATCH = 512;

/** The files in their order are one program: records first, the loop over the operations last. */
const TEXT = Object.keys(scripts)
  .sort()
  .map((name) => scripts[name as keyof typeof scripts])
  .join("\n");
const SHA = createHash("sha1").update(TEXT).digest("hex");

interface Operation {
  readonly key: string;
  readonly words: readonly string[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends operations. Those of one turn of the event loop travel in one call of the script: a client
 * spends more on a command than the server does on an operation.
 */
export class Commander {
  readonly #seam: Seam;
  readonly #common: readonly string[];
  #waiting: Operation[] = [];

  /** common: what the script wants before the operations. */
  constructor(seam: Seam, common: readonly string[]) {
    this.#seam = seam;
    this.#common = common;
  }

  /** words: the name of the operation and its arguments, as the script's headers give them. */
  run(key: string, words: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // After the microtasks that are due: whoever asks in this turn goes along.
      if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
      this.#waiting.push({ key, words, resolve, reject });
    });
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let i = 0; i < all.length; i += MAX_BATCH) void this.#send(all.slice(i, i + MAX_BATCH));
  }

  async #send(batch: readonly Operation[]): Promise<void> {
    const keys: string[] = [];
    const args = [...this.#common];
    for (const { key, words } of batch) {
      keys.push(key);
      args.push(...words);
    }
    try {
      const answers = await this.#call(keys, args);
      for (const [i, operation] of batch.entries()) settle(operation, answers[i]);
    } catch (error) {
      if (batch.length > 1 && isForbidden(error)) {
        // One key that this user may not touch refuses them all, and nothing ran.
        for (const operation of batch) void this.#send([operation]);
        return;
      }
      const reason = explain(error);
      for (const operation of batch) operation.reject(reason);
    }
  }

  /** A server that was restarted, failed over or flushed has forgotten the script; nothing ran then. */
  async #call(keys: string[], args: string[]): Promise<unknown[]> {
    try {
      return (await this.#seam.script({ sha: SHA }, keys, args)) as unknown[];
    } catch (error) {
      if (!isMissingScript(error)) throw error;
      return (await this.#seam.script({ text: TEXT }, keys, args)) as unknown[];
    }
  }
}

function settle(operation: Operation, answer: unknown): void {
  const failed = Array.isArray(answer) && answer[0] === "error";
  if (failed) operation.reject(explain(new Error(String(answer[1]))));
  else operation.resolve(answer);
}
