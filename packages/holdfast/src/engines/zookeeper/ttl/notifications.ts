import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { refusal } from "../failure.js";
import type { Sessions } from "../session/sessions.js";
import { CODES } from "../wire/codes.js";
import type { Session } from "../wire/session.js";
import { readLockRecord, signatureOf } from "./lock-record.js";

const SWEEP_MS = 1_000;
const ASK_MS = 5_000;

interface WatchedRecord {
  readonly resource: string;
  until: number;
  session: Session | null;
  listener: () => void;
  /** Who held when the record was last read. */
  signature: string;
}

/**
 * Watches records for which somebody in this process waits or holds, and tells when their holders
 * change.
 */
export class Notifications {
  readonly #sessions: Sessions;
  readonly #onChange: (resource: string) => void;
  readonly #watched = new Map<string, WatchedRecord>();
  #timer: Timer | null = null;

  constructor(sessions: Sessions, onChange: (resource: string) => void) {
    this.#sessions = sessions;
    this.#onChange = onChange;
  }

  /** Watches a record for so long, and for longer if it is called again. */
  watch(path: string, resource: string, forMs: number, signature: string): void {
    const until = systemClock.now() + forMs;
    const known = this.#watched.get(path);
    if (known !== undefined) {
      known.until = Math.max(known.until, until);
      return;
    }
    const listener = () => {};
    const watched: WatchedRecord = { resource, until, session: null, listener, signature };
    watched.listener = () => void this.#read(path, watched);
    this.#watched.set(path, watched);
    void this.#read(path, watched);
    this.#timer ??= systemClock.timer(SWEEP_MS, () => this.#sweep(), false);
  }

  close(): void {
    this.#timer?.cancel();
    for (const [path, watched] of this.#watched) this.#unwatch(path, watched);
  }

  async #read(path: string, watched: WatchedRecord): Promise<void> {
    if (this.#watched.get(path) !== watched) return;
    const session = this.#sessions.any();
    watched.session = session;
    try {
      const { listener } = watched;
      const { err, value } = await session.watch(path, systemClock.now() + ASK_MS, listener);
      if (err !== CODES.ok && err !== CODES.noNode) throw refusal(err);
      const known = value === null ? null : readLockRecord(value.data);
      const signature = known === null ? "" : signatureOf(known.record);
      const changed = watched.signature !== signature;
      watched.signature = signature;
      // A node that is gone cannot be watched. The next claim watches the new one.
      if (err === CODES.noNode && this.#watched.get(path) === watched) this.#unwatch(path, watched);
      if (changed) this.#onChange(watched.resource);
    } catch {
      // Without a watch, waiters look again at their own pace, as after any lost notification.
      if (this.#watched.get(path) === watched) this.#unwatch(path, watched);
    }
  }

  #sweep(): void {
    this.#timer = null;
    const now = systemClock.now();
    for (const [path, watched] of this.#watched) {
      if (watched.until <= now) this.#unwatch(path, watched);
    }
    if (this.#watched.size === 0) return;
    this.#timer = systemClock.timer(SWEEP_MS, () => this.#sweep(), false);
  }

  #unwatch(path: string, watched: WatchedRecord): void {
    this.#watched.delete(path);
    watched.session?.unwatch(path, watched.listener);
  }
}
