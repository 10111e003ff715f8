import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Gone, GrantRef, Released } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { emit } from "../../../events.js";
import { inDoubt } from "../failure.js";
import { hashOf } from "../paths.js";
import type { Sessions } from "../session/sessions.js";
import { remove } from "../wire/operations.js";
import type { Session } from "../wire/session.js";
import type { Standing } from "./claim-state.js";
import type { Claims } from "./claims.js";
import { markerOf } from "./queue.js";

const TICK_MS = 100;
const AGAIN_MS = 1_000;
/** Longer than any request could still be under way in a socket that nobody reads. */
const DOUBT_MS = 120_000;
const DOUBT_LOOK_MS = 2_000;

interface Grave {
  readonly path: string;
  readonly room: string;
  readonly session: Session;
  readonly until: number;
  /** Where an answer was lost, a node may still turn up: nobody but us would take it away. */
  lookAt: number;
}

interface LeftBehind {
  readonly resource: string;
  readonly endsAt: number;
}

/**
 * The claims of this process. A session keeps all of its nodes alive, those too that nobody wants any
 * more; so what core is not heard of in time, or could not be told, is taken away here.
 */
export class Ours {
  readonly #claims: Claims;
  readonly #sessions: Sessions;
  readonly #standings = new Map<string, Standing>();
  readonly #graves = new Map<string, Grave>();
  /** What was left behind here, by its grantId, and until when. */
  readonly #left = new Map<string, LeftBehind>();
  #timer: Timer | null = null;
  #closed = false;

  constructor(claims: Claims, sessions: Sessions) {
    this.#claims = claims;
    this.#sessions = sessions;
  }

  find({ resource, grantId }: GrantRef): Standing | null {
    const standing = this.#standings.get(grantId);
    return standing?.claim.resource === resource ? standing : null;
  }

  add(standing: Standing): void {
    this.#standings.set(standing.claim.grantId, standing);
    this.#wake();
  }

  /** Nobody is asked about it any more, and nobody listens. */
  forget(standing: Standing): void {
    standing.state = "leaving";
    standing.unwatch();
    const { grantId } = standing.claim;
    if (this.#standings.get(grantId) === standing) this.#standings.delete(grantId);
  }

  /** It is nobody's any more, and keeps others out until then. */
  left(standing: Standing, endsAt: number): void {
    this.forget(standing);
    const { resource, grantId } = standing.claim;
    this.#left.set(grantId, { resource, endsAt });
    this.#wake();
  }

  /** Until when a grant keeps others out that was left behind here; null if none was. */
  leftUntil({ resource, grantId }: GrantRef): number | null {
    const left = this.#left.get(grantId);
    return left?.resource === resource ? left.endsAt : null;
  }

  /** To be taken away, now or as soon as the servers can be asked. */
  abandon(standing: Standing, inMs = 0): void {
    standing.state = "leaving";
    standing.deadline = systemClock.now() + inMs;
    this.#wake();
  }

  /** All that a session held, when it is over. */
  endOf(session: Session): Standing[] {
    const ended = [...this.#standings.values()].filter((one) => one.session === session);
    for (const standing of ended) this.forget(standing);
    for (const [hash, grave] of this.#graves) {
      if (grave.session === session) this.#graves.delete(hash);
    }
    return ended;
  }

  isBuried(hash: string): boolean {
    return this.#graves.has(hash);
  }

  /** Ends the grant or the waiting of exactly this grantId. */
  async release(
    ref: GrantRef,
    room: string,
    tombstoneMs: number,
    until: number,
  ): Promise<Released | Gone> {
    const standing = this.find(ref);
    if (standing === null) return this.#releaseByHash(ref, room, tombstoneMs, null, until);
    const isDoubtful = standing.doubtful || standing.path === null || standing.state === "leaving";
    const graveMs = Math.max(tombstoneMs, isDoubtful ? DOUBT_MS : 0);
    this.abandon(standing);
    standing.unwatch();
    standing.releases++;
    try {
      return await this.#release(standing, graveMs, until);
    } catch (error) {
      this.abandon(standing, AGAIN_MS);
      const isUnsent = error instanceof EngineError && error.effect === "none" && error.retryable;
      // It is taken away here soon: whoever asks once more may find that this is done.
      throw isUnsent ? inDoubt(error) : error;
    } finally {
      standing.releases--;
    }
  }

  async #release(standing: Standing, graveMs: number, until: number): Promise<Released | Gone> {
    const { ref, room, session, path, marker } = standing;
    if (graveMs > 0 || path === null || session.over) {
      return this.#releaseByHash(ref, room, graveMs, standing, until);
    }
    try {
      if (await this.#claims.rooms.leave(session, path, marker, until)) {
        this.forget(standing);
        return { kind: "released" };
      }
    } catch (error) {
      if (!session.over) throw error;
    }
    return this.#releaseByHash(ref, room, 0, standing, until);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const standing of [...this.#standings.values()]) this.forget(standing);
    this.#graves.clear();
  }

  /** Whatever there is of this grantId, wherever it came from. */
  async #releaseByHash(
    ref: GrantRef,
    room: string,
    graveMs: number,
    standing: Standing | null,
    until: number,
  ): Promise<Released | Gone> {
    const hash = hashOf(ref.grantId);
    const own = standing?.session;
    const pick = () => (own === undefined || own.over ? this.#sessions.any() : own);
    const { released, line } = await this.#sessions.on(pick, async (session) => {
      if (graveMs > 0) {
        const path = await this.#claims.rooms.bury(session, room, hash, until);
        const now = systemClock.now();
        const lookAt = standing?.doubtful ? now + AGAIN_MS : Infinity;
        this.#graves.set(hash, { path, room, session, until: now + graveMs, lookAt });
        this.#wake();
      }
      return this.#sweep(hash, { session, room }, until);
    });
    if (standing !== null) this.forget(standing);
    if (released) return { kind: "released" };
    return { kind: "gone", why: line.contenders.length > 0 ? "replaced" : "expired" };
  }

  /** Takes away every node of this grantId. */
  async #sweep(hash: string, { session, room }: Pick<Grave, "session" | "room">, until: number) {
    const { rooms } = this.#claims;
    const line = await rooms.line(session, room, until);
    let released = false;
    const ours = line.contenders.filter((one) => one.hash === hash && one.left === null);
    for (const one of ours) {
      const marker = markerOf(line, room, one);
      released = (await rooms.leave(session, `${room}/${one.name}`, marker, until)) || released;
    }
    return { released, line };
  }

  #wake(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = systemClock.timer(TICK_MS, () => this.#tick(), false);
  }

  #tick(): void {
    this.#timer = null;
    const now = systemClock.now();
    const inUse = new Set<Session>();
    for (const standing of this.#standings.values()) {
      inUse.add(standing.session);
      if (standing.session.over) this.forget(standing);
      else if (now >= standing.deadline && standing.releases === 0) this.#expel(standing, now);
      else if (now >= standing.guardFrom && standing.state === "granted") this.#guard(standing);
    }
    for (const [hash, grave] of this.#graves) {
      inUse.add(grave.session);
      if (now >= grave.lookAt || (now >= grave.until && grave.lookAt < Infinity)) {
        grave.lookAt = now + DOUBT_LOOK_MS;
        this.#sweep(hash, grave, now + AGAIN_MS).catch(() => {});
      }
      if (now < grave.until) continue;
      this.#graves.delete(hash);
      // If it stays, it goes with the session.
      grave.session.ask(remove(grave.path), now + AGAIN_MS).catch(() => {});
    }
    for (const [grantId, { endsAt }] of this.#left) if (now >= endsAt) this.#left.delete(grantId);
    this.#sessions.sweep((session) => inUse.has(session));
    if (inUse.size + this.#left.size > 0) this.#wake();
  }

  #guard(standing: Standing): void {
    standing.guardFrom = Infinity;
    const until = systemClock.now() + AGAIN_MS;
    this.#claims.guards.guard(standing, until).catch(() => {
      standing.guardFrom = until;
    });
  }

  /** Its marker stays: a holder that core gave up without a release was lost. */
  #expel(standing: Standing, now: number): void {
    const { session, path, doubtful, room, ref } = standing;
    this.abandon(standing, AGAIN_MS);
    standing.unwatch();
    const until = now + AGAIN_MS;
    const work =
      path === null || doubtful
        ? this.#releaseByHash(ref, room, DOUBT_MS, standing, until)
        : this.#claims.rooms.leave(session, path, null, until).then(() => this.forget(standing));
    work.catch((error: unknown) => {
      if (error instanceof EngineError && error.retryable) return;
      emit("failed", () => ({ during: "clean-up", error, resource: ref.resource }));
    });
  }
}
