import type { Clock } from "../../../core/runtime/clock.js";
import type { Call, Granted, GrantRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import { granted, refOf } from "../records/answers.js";
import type { LockTables } from "../records/lock-tables.js";
import type { GrantRow } from "../records/rows.js";
import { WakeFiles } from "./wake-files.js";

const WAKE_TIMEOUT_MS = 5_000;

export type GrantListener = (waiter: GrantRef, granted: Granted) => void;
export type ChangeListener = (resource: string) => void;
type Transact = <T>(call: Call, work: (tables: LockTables) => T) => Promise<T>;

/**
 * Pushes grants and changes: to other processes through their wake files, to our own core directly.
 */
export class Notifications {
  readonly grantListeners = new Set<GrantListener>();
  readonly changeListeners = new Set<ChangeListener>();
  /** The number of the wake file that this engine watches; null if it watches none. */
  wakeFile: number | null = null;
  listening = false;
  readonly #wakeFiles: WakeFiles;
  readonly #self: string;
  readonly #clock: Clock;
  readonly #transact: Transact;
  // Core's clock minus ours, learned from core's calls. A push belongs to no call, but its validity
  // must be given in instants of core's clock.
  #coreOffsetMs = 0;

  constructor(path: string, self: string, clock: Clock, transact: Transact) {
    this.#wakeFiles = new WakeFiles(path);
    this.#self = self;
    this.#clock = clock;
    this.#transact = transact;
  }

  /** Starts watching our wake file. This must happen before other processes learn its number. */
  listen(): void {
    if (this.listening) return;
    this.listening = true;
    this.wakeFile = this.#wakeFiles.listen(this.#self, () => void this.#onWake());
  }

  learnClockOffset(call: Call): void {
    this.#coreOffsetMs = call.startedAt - this.#clock.now();
  }

  /** After a commit: wakes other processes, and tells our own waiters directly. */
  notify(tables: LockTables, since: number): void {
    for (const number of tables.peers.toWake) this.#wakeFiles.wake(number);
    for (const row of tables.granted) this.#push(row, since);
  }

  changed(resource: string): void {
    for (const listener of this.changeListeners) listener(resource);
  }

  close(): void {
    this.#wakeFiles.close();
    this.grantListeners.clear();
    this.changeListeners.clear();
  }

  /**
   * Another process wrote to our wake file: claims what it granted to our waiters, and reports
   * revocations.
   */
  async #onWake(): Promise<void> {
    const since = this.#clock.now();
    const call = { startedAt: since, timeoutMs: WAKE_TIMEOUT_MS, order: 0 };
    try {
      const { claimed, revoked } = await this.#transact(call, (tables) => ({
        claimed: tables.claimOwnGrants(),
        revoked: tables.revokedOwnResources(),
      }));
      for (const row of claimed) this.#push(row, since);
      for (const resource of revoked) this.changed(resource);
    } catch (error) {
      emit("failed", () => ({ during: "wake-up", error }));
    }
  }

  #push(row: GrantRow, since: number): void {
    const answer = granted(row, since + this.#coreOffsetMs);
    for (const listener of this.grantListeners) listener(refOf(row), answer);
  }
}
