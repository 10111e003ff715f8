import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ensure } from "../installing/install.js";

const TIMEOUT_MS = 10_000;
const POLL_MS = 20;

const run = promisify(execFile);

/**
 * What a Redis on this port answers, as redis-cli prints it to a file. Rejects where none answers.
 */
export async function redisCli(port: number, ...args: readonly string[]): Promise<string> {
  const options = { timeout: TIMEOUT_MS };
  const { stdout } = await run(ensure("redis-cli"), ["-p", String(port), ...args], options);
  return stdout;
}

/** Polls until the check succeeds. A rejection means "not yet". */
export async function eventually<T>(
  what: string,
  withinMs: number,
  look: () => Promise<T | null>,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (let cause: unknown; ; ) {
    const found = await look().catch((error: unknown) => {
      cause = error;
      return null;
    });
    if (found !== null) return found;
    if (performance.now() > deadline) {
      throw new Error(`${what}: not within ${withinMs} ms`, { cause });
    }
    await sleep(POLL_MS);
  }
}
