import { createHash } from "node:crypto";
import { closeSync, type FSWatcher, mkdirSync, openSync, watch, writeSync } from "node:fs";
import { join } from "node:path";
import { emit } from "../../../events.js";

// All engines share a fixed number of wake files, so files do not pile up as processes come and
// die. Two engines on one wake file sometimes wake each other for nothing, which costs one
// transaction.
const WAKE_FILES = 64;

/**
 * Lets one process wake another without polling: the other process watches a file, and this one
 * writes to it. A lost wake-up delays the waiter by one heartbeat, nothing more. The files are in
 * the folder "-bells", and the column "bell" of peers has their numbers: older versions read the
 * same names.
 */
export class WakeFiles {
  readonly #folder: string;
  #watcher: FSWatcher | null = null;

  constructor(databasePath: string) {
    this.#folder = `${databasePath}-bells`;
  }

  /** Watches this peer's wake file. Null if the system allows no watch: then heartbeats must do. */
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
      // The content does not matter: the watcher notices any write.
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
    emit("failed", () => ({ during: "wake-up", error }));
  }

  #path(number: number): string {
    return join(this.#folder, String(number).padStart(2, "0"));
  }
}
