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

/** What is told without being asked: to other processes by their bells, to our own core directly. */
export class Notifications {
  readonly grantListeners = new Set<GrantListener>();
  readonly changeListeners = new Set<ChangeListener>();
  /** Where our bell hangs; null without one. */
  wakeFile: number | null = null;
  listening = false;
  readonly #wakeFiles: WakeFiles;
  readonly #self: string;
  readonly #clock: Clock;
  readonly #transact: Transact;
  // Core's clock less ours, learned from the calls it makes. A push has no call of its own, and its
  // validity must be told in core's instants all the same.
  #coreOffsetMs = 0;

  constructor(path: string, self: string, clock: Clock, transact: Transact) {
    this.#wakeFiles = new WakeFiles(path);
    this.#self = self;
    this.#clock = clock;
    this.#transact = transact;
  }

  /** Hangs up the bell. It must hang before anyone can be asked to ring it. */
  listen(): void {
    if (this.listening) return;
    this.listening = true;
    this.wakeFile = this.#wakeFiles.listen(this.#self, () => void this.#onWake());
  }

  learnClockOffset(call: Call): void {
    this.#coreOffsetMs = call.startedAt - this.#clock.now();
  }

  /** After a commit: wakes the other processes, and our own waiters directly. */
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

  /** Somebody rang: claims what was granted to our waiters, and passes on what was revoked. */
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
      emit("failed", () => ({ during: "bell", error }));
    }
  }

  #push(row: GrantRow, since: number): void {
    const answer = granted(row, since + this.#coreOffsetMs);
    for (const listener of this.grantListeners) listener(refOf(row), answer);
  }
}
