import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { timeoutFor } from "../wire/proof.js";
import { Session, type SessionSpec } from "../wire/session.js";

// Each session is a connection with a keepalive. Further ttls share the nearest longer session.
const MOST_SESSIONS = 8;
const MOST_TRIES = 3;
const IDLE_MS = 60_000;
const USUAL_TTL_MS = 30_000;

interface Kept {
  readonly ttlMs: number;
  readonly session: Session;
  usedAt: number;
}

/** The sessions of one engine: one for each ttl, because all nodes of a session end at once. */
export class Sessions {
  readonly #spec: Omit<SessionSpec, "timeoutMs">;
  readonly #onEnd: (session: Session) => void;
  #kept: Kept[] = [];
  #closed = false;

  constructor(spec: Omit<SessionSpec, "timeoutMs">, onEnd: (session: Session) => void) {
    this.#spec = spec;
    this.#onEnd = onEnd;
  }

  /** The session for this ttl: the grant of a dead holder ends when its session times out. */
  for(ttlMs: number): Session {
    const open = this.#kept.filter(({ session }) => !session.over);
    this.#kept = open;
    const own = open.find((kept) => kept.ttlMs === ttlMs);
    if (own !== undefined) return use(own);
    if (open.length < MOST_SESSIONS) return this.#open(ttlMs);
    const byLength = open.toSorted((a, b) => a.ttlMs - b.ttlMs);
    return use(byLength.find((kept) => kept.ttlMs > ttlMs) ?? byLength.at(-1)!);
  }

  /** Any session, for reads that belong to no claim. */
  any(): Session {
    const kept = this.#kept.find(({ session }) => !session.over);
    return kept === undefined ? this.#open(USUAL_TTL_MS) : use(kept);
  }

  /**
   * Runs requests on a session. If the session turns out to be over before anything was sent, the
   * next session is used instead.
   */
  async on<T>(pick: () => Session, work: (session: Session) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const session = pick();
      try {
        return await work(session);
      } catch (error) {
        const undone = error instanceof EngineError && error.effect === "none" && error.retryable;
        if (!undone || !session.over || this.#closed || tries === MOST_TRIES) throw error;
      }
    }
  }

  /** Waits until the servers answer, or throws the reason why they do not. */
  async ready(withinMs: number): Promise<void> {
    const session = this.any();
    let late = false;
    await new Promise<void>((resolve) => {
      const timer = systemClock.timer(
        withinMs,
        () => {
          late = true;
          resolve();
        },
        true,
      );
      void session.opened.then(() => {
        timer.cancel();
        resolve();
      });
    });
    if (!late && !session.over) return;
    const cause = session.lastFailure ?? new Error("no connection in time");
    const hosts = this.#spec.hosts.map(({ host, port }) => `${host}:${port ?? 2181}`).join(",");
    throw new EngineError(`no ZooKeeper at ${hosts}: ${cause.message}`, {
      ...{ effect: "none", retryable: true, reason: "unreachable", cause },
    });
  }

  /** Closes sessions that were not used for a while. The last one stays. */
  sweep(wouldWait: (session: Session) => boolean): void {
    const now = systemClock.now();
    for (const kept of [...this.#kept]) {
      if (this.#kept.length === 1) return;
      if (wouldWait(kept.session)) kept.usedAt = now;
      if (now - kept.usedAt < IDLE_MS) continue;
      this.#kept = this.#kept.filter((other) => other !== kept);
      void kept.session.close();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#kept.map(({ session }) => session.close()));
  }

  #open(ttlMs: number): Session {
    const spec = { ...this.#spec, timeoutMs: timeoutFor(ttlMs) };
    const session: Session = new Session(spec, () => this.#onEnd(session));
    this.#kept.push({ ttlMs, session, usedAt: systemClock.now() });
    return session;
  }
}

function use(kept: Kept): Session {
  kept.usedAt = systemClock.now();
  return kept.session;
}
