import { createHash } from "node:crypto";
import type { Seam } from "./client.js";
import { explain, isMissingScript } from "./failure.js";
import { scripts } from "./scripts.gen.js";

const MAX_BATCH = 128;

/** The files in their order are one program: records first, the loop over the operations last. */
const TEXT = Object.keys(scripts)
  .sort()
  .map((name) => scripts[name as keyof typeof scripts])
  .join("\n");
const SHA = createHash("sha1").update(TEXT).digest("hex");

interface Operation {
  readonly name: string;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends operations. Those of one turn of the event loop travel in one call of the script: a client
 * spends more on a command than the server does on an operation.
 */
export class Commander {
  readonly #seam: Seam;
  #waiting: Operation[] = [];

  constructor(seam: Seam) {
    this.#seam = seam;
  }

  run(name: string, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      // After the microtasks that are due: whoever asks in this turn goes along.
      if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
      this.#waiting.push({ name, keys, args, resolve, reject });
    });
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let i = 0; i < all.length; i += MAX_BATCH) void this.#send(all.slice(i, i + MAX_BATCH));
  }

  async #send(batch: readonly Operation[]): Promise<void> {
    try {
      const keys = batch.flatMap((operation) => operation.keys);
      const args = batch.flatMap(({ name, args }) => [
        name,
        String(args.length),
        ...args.map(String),
      ]);
      const answers = await this.#call(keys, args);
      for (const [i, operation] of batch.entries()) settle(operation, answers[i]);
    } catch (error) {
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
