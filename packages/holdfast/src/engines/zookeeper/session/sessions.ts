import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { timeoutFor } from "../wire/proof.js";
import { Session, type SessionSpec } from "../wire/session.js";

// Each is a connection with a keepalive. More different ttls than these share the nearest longer one.
const MOST_SESSIONS = 8;
const MOST_TRIES = 3;
const IDLE_MS = 60_000;
const USUAL_TTL_MS = 30_000;

interface Kept {
  readonly ttlMs: number;
  readonly session: Session;
  usedAt: number;
}

/** The sessions of one engine: one for each ttl, because what a session holds ends all at once. */
export class Sessions {
  readonly #spec: Omit<SessionSpec, "timeoutMs">;
  readonly #onEnd: (session: Session) => void;
  #kept: Kept[] = [];
  #closed = false;

  constructor(spec: Omit<SessionSpec, "timeoutMs">, onEnd: (session: Session) => void) {
    this.#spec = spec;
    this.#onEnd = onEnd;
  }

  /** A dead holder's grant ends with its session, so the ttl decides which one. */
  for(ttlMs: number): Session {
    const open = this.#kept.filter(({ session }) => !session.over);
    this.#kept = open;
    const own = open.find((kept) => kept.ttlMs === ttlMs);
    if (own !== undefined) return use(own);
    if (open.length < MOST_SESSIONS) return this.#open(ttlMs);
    const byLength = open.toSorted((a, b) => a.ttlMs - b.ttlMs);
    return use(byLength.find((kept) => kept.ttlMs > ttlMs) ?? byLength.at(-1)!);
  }

  /** For questions, which belong to no session. */
  any(): Session {
    const kept = this.#kept.find(({ session }) => !session.over);
    return kept === undefined ? this.#open(USUAL_TTL_MS) : use(kept);
  }

  /**
   * Asks on a session. One that turns out to be over has done nothing that was not sent; then the
   * next one is asked instead.
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

  /** Waits until the servers answer; says why they do not. */
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

  /** Closes what nobody has used for a while; the last one stays. */
  sweep(isBusy: (session: Session) => boolean): void {
    const now = systemClock.now();
    for (const kept of [...this.#kept]) {
      if (this.#kept.length === 1) return;
      if (isBusy(kept.session)) kept.usedAt = now;
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
