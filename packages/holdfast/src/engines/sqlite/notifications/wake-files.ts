import { createHash } from "node:crypto";
import { closeSync, type FSWatcher, mkdirSync, openSync, watch, writeSync } from "node:fs";
import { join } from "node:path";
import { emit } from "../../../events.js";

// Processes share a fixed number of bells, so nothing piles up however many come and die. Two on
// one bell wake each other now and then, which costs a look.
const WAKE_FILES = 64;

/**
 * How one process wakes another without either polling: a file per number, written to ring it and
 * watched to hear it. A ring that gets lost costs the waiter one heartbeat, nothing more.
 */
export class WakeFiles {
  readonly #folder: string;
  #watcher: FSWatcher | null = null;

  constructor(databasePath: string) {
    this.#folder = `${databasePath}-bells`;
  }

  /** Hangs up this peer's number. Null where the system gives no watch: heartbeats must do. */
  listen(peer: string, onWake: () => void): number | null {
    const number = createHash("sha256").update(peer).digest().readUInt8(0) % WAKE_FILES;
    try {
      mkdirSync(this.#folder, { recursive: true });
      const path = this.#path(number);
      closeSync(openSync(path, "a"));
      this.#watcher = watch(path, { persistent: false }, onWake);
      this.#watcher.on("error", (error) => this.#failed(error));
      return number;
    } catch (error) {
      this.#failed(error);
      return null;
    }
  }

  wake(number: number): void {
    try {
      // What is written does not matter; that it is written is what the watcher hears.
      const file = openSync(this.#path(number), "r+");
      writeSync(file, "!", 0);
      closeSync(file);
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
  }

  #failed(error: unknown): void {
    emit("failed", () => ({ during: "bell", error }));
  }

  #path(number: number): string {
    return join(this.#folder, String(number).padStart(2, "0"));
  }
}
