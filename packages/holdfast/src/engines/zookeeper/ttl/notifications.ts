import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { refusal } from "../failure.js";
import type { Sessions } from "../session/sessions.js";
import { CODES } from "../wire/codes.js";
import type { Session } from "../wire/session.js";
import { readLedger, signatureOf } from "./record.js";

const SWEEP_MS = 1_000;
const ASK_MS = 5_000;

interface Bell {
  readonly resource: string;
  until: number;
  session: Session | null;
  listener: () => void;
  signature: string | null;
}

/** Watches the ledgers that somebody here waits for or holds, and tells when who holds has changed. */
export class Notifications {
  readonly #sessions: Sessions;
  readonly #ring: (resource: string) => void;
  readonly #notifications = new Map<string, Bell>();
  #timer: Timer | null = null;

  constructor(sessions: Sessions, ring: (resource: string) => void) {
    this.#sessions = sessions;
    this.#ring = ring;
  }

  /** Listens for so long, unless somebody asks again. */
  hang(path: string, resource: string, forMs: number, signature: string): void {
    const until = systemClock.now() + forMs;
    const known = this.#notifications.get(path);
    if (known !== undefined) {
      known.until = Math.max(known.until, until);
      return;
    }
    const bell: Bell = { resource, until, session: null, listener: () => {}, signature };
    bell.listener = () => void this.#hear(path, bell);
    this.#notifications.set(path, bell);
    void this.#hear(path, bell);
    this.#timer ??= systemClock.timer(SWEEP_MS, () => this.#sweep(), false);
  }

  close(): void {
    this.#timer?.cancel();
    for (const [path, bell] of this.#notifications) this.#take(path, bell);
  }

  async #hear(path: string, bell: Bell): Promise<void> {
    if (this.#notifications.get(path) !== bell) return;
    const session = this.#sessions.any();
    bell.session = session;
    try {
      const { err, value } = await session.watch(path, systemClock.now() + ASK_MS, bell.listener);
      if (err !== CODES.ok && err !== CODES.noNode) throw refusal(err);
      const written = value === null ? null : readLedger(value.data);
      const signature = written === null ? "" : signatureOf(written.ledger);
      const changed = bell.signature !== signature;
      bell.signature = signature;
      // A node that is gone cannot be watched; whoever comes will hang the bell again.
      if (err === CODES.noNode && this.#notifications.get(path) === bell) this.#take(path, bell);
      if (changed) this.#ring(bell.resource);
    } catch {
      // Without it the pace of looking again is all there is, as after any message that got lost.
      if (this.#notifications.get(path) === bell) this.#take(path, bell);
    }
  }

  #sweep(): void {
    this.#timer = null;
    const now = systemClock.now();
    for (const [path, bell] of this.#notifications) if (bell.until <= now) this.#take(path, bell);
    if (this.#notifications.size === 0) return;
    this.#timer = systemClock.timer(SWEEP_MS, () => this.#sweep(), false);
  }

  #take(path: string, bell: Bell): void {
    this.#notifications.delete(path);
    bell.session?.unwatch(path, bell.listener);
  }
}
