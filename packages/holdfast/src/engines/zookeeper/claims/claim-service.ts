import { systemClock } from "../../../core/runtime/clock.js";
import type {
  Call,
  Claim,
  EngineTraits,
  Gone,
  Granted,
  GrantRef,
  Queued,
} from "../../../engine.js";
import { EngineError, limitMismatch, UnsupportedError } from "../../../errors.js";
import { emit } from "../../../events.js";
import type { Views } from "../inspect/views.js";
import type { ZookeeperTerms } from "../options.js";
import { hashOf, pathOf } from "../paths.js";
import { tokenOf } from "../record.js";
import type { Sessions } from "../session/sessions.js";
import { Standing } from "./claim-state.js";
import type { Claims, Place } from "./claims.js";
import type { Ours } from "./own-claims.js";
import { isBuried, isBusy, type Line, otherLimit } from "./queue.js";

// Watches tell; heartbeats are for what got lost on the way, and the head of the line is told first.
const HEAD_BEAT_MS = 1_000;
const BEAT_MS = 2_000;
const FORGIVEN_BEATS = 3;
/** A pushed grant must be claimed within this. */
const CLAIM_MS = FORGIVEN_BEATS * HEAD_BEAT_MS;
/** After a lost answer core may ask again with the same grantId. */
const REPEAT_MS = 5_000;

/** A call in systemClock's time: core's clock may be another. */
export interface Timing {
  readonly call: Call;
  readonly at: number;
  readonly until: number;
}

interface Tools {
  readonly sessions: Sessions;
  readonly claims: Claims;
  readonly ours: Ours;
  readonly views: Views;
}

/** Answers what core asks about our claims: where they stand, and for how long what it got is good. */
export class Desk {
  readonly #terms: ZookeeperTerms;
  readonly #traits: EngineTraits;
  readonly #sessions: Sessions;
  readonly #claims: Claims;
  readonly #ours: Ours;
  readonly #views: Views;
  readonly #onGrant: (waiter: GrantRef, granted: Granted) => void;
  #closed = false;

  constructor(
    terms: ZookeeperTerms,
    traits: EngineTraits,
    { sessions, claims, ours, views }: Tools,
    onGrant: (waiter: GrantRef, granted: Granted) => void,
  ) {
    this.#terms = terms;
    this.#traits = traits;
    this.#sessions = sessions;
    this.#claims = claims;
    this.#ours = ours;
    this.#views = views;
    this.#onGrant = onGrant;
  }

  close(): void {
    this.#closed = true;
  }

  /** A claim, new or known. Without patience it leaves again where it would have to wait. */
  async stand(claim: Claim, timing: Timing, inLine: boolean): Promise<Granted | Queued | Gone> {
    this.#refuseUnsupported(claim);
    const known = this.#ours.find(claim);
    if (known !== null && known.state !== "leaving") {
      const place = await this.look(known, timing);
      const over = place.is === "missing" && known.session.over;
      // The call before this one may have been given up meanwhile; its node is still this claim's.
      if (!over && !isLeaving(known)) return this.answer(known, place, timing);
    }
    const hash = hashOf(claim.grantId);
    const room = pathOf(this.#terms.place, claim.resource);
    if (this.#ours.isBuried(hash) || this.#ours.leftUntil(claim) !== null) {
      return { kind: "gone", why: "unknown" };
    }
    const pick = () => this.#sessions.for(claim.ttlMs);
    return this.#sessions.on(pick, async (session) => {
      session.refresh();
      const aheadMs = timing.at - timing.call.startedAt;
      const standing = new Standing(claim, hash, room, session, aheadMs);
      standing.doubtful = known !== null;
      // Before anything is asked: the same claim may come again meanwhile, and is the same one.
      this.#ours.add(standing);
      const place = await this.#comeIn(standing, timing, inLine);
      if ("kind" in place) return place;
      const answer = await this.answer(standing, place, timing);
      if (inLine || answer.kind !== "queued") return answer;
      await this.#ours.release(standing.ref, room, 0, timing.until);
      return answer;
    });
  }

  async #comeIn(
    standing: Standing,
    timing: Timing,
    inLine: boolean,
  ): Promise<Place | Queued | Gone> {
    const { until } = timing;
    const entering = inLine
      ? this.#claims.enter(standing, until)
      : this.#enterUnlessRefused(standing, timing);
    standing.entered = entering.catch(() => {});
    try {
      return await entering;
    } catch (error) {
      const leavesNothing = standing.path === null && !standing.doubtful;
      if (leavesNothing) this.#ours.forget(standing);
      else if (error instanceof EngineError) this.#ours.abandon(standing, REPEAT_MS);
      else await this.#ours.release(standing.ref, standing.room, 0, until);
      throw error;
    }
  }

  async #enterUnlessRefused(standing: Standing, timing: Timing): Promise<Place | Queued | Gone> {
    const line = await this.#claims.rooms.line(standing.session, standing.room, timing.until);
    const refused = await this.#refused(standing, line, timing);
    if (refused === null) return this.#claims.enter(standing, timing.until);
    this.#ours.forget(standing);
    return refused;
  }

  /** What can be said without writing anything. */
  async #refused(
    { claim, hash, session, room }: Standing,
    line: Line,
    { until }: Timing,
  ): Promise<Queued | Gone | null> {
    const { resource, mode, limit } = claim;
    if (isBuried(line, hash)) return { kind: "gone", why: "unknown" };
    const others = line.contenders.filter(({ left }) => left === null);
    const other = mode === "shared" ? otherLimit(others, limit) : undefined;
    if (other !== undefined) throw limitMismatch(resource, limit, other);
    if (!isBusy(line, mode, limit)) return null;
    const holders = await this.#views.holders(session, room, line, until);
    const position = line.contenders.length - line.holding;
    return { kind: "queued", position, nextHeartbeatMs: HEAD_BEAT_MS, holders };
  }

  /** Where a claim of ours stands, with a line that several may have been asked about together. */
  async look(standing: Standing, timing: Timing, lines?: Map<string, Promise<Line>>) {
    const { session, room } = standing;
    standing.aheadMs = Math.min(standing.aheadMs, timing.at - timing.call.startedAt);
    // Core is there, whether or not the servers can be asked.
    const heardUntil = timing.at + FORGIVEN_BEATS * BEAT_MS;
    if (standing.state === "waiting") standing.deadline = Math.max(standing.deadline, heardUntil);
    await standing.entered;
    return this.unlessOver(standing, async (): Promise<Place> => {
      const line = lines?.get(room) ?? this.#claims.rooms.line(session, room, timing.until);
      lines?.set(room, line);
      // Given up already; but that it is gone is for the servers to say.
      if (standing.state === "leaving") return { is: (await line) && "missing" };
      return this.#claims.look(standing, timing.until, line);
    }).then((place): Place => (place === "missing" ? { is: "missing" } : place));
  }

  async answer(standing: Standing, place: Place, timing: Timing): Promise<Granted | Queued | Gone> {
    const { session, room } = standing;
    if (place.is === "revoked") return { kind: "gone", why: "revoked" };
    if (standing.state === "leaving") {
      // Core will come with another claim, and must not have to wait for this one.
      this.#ours.abandon(standing);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "missing") {
      this.#ours.forget(standing);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "buried") {
      this.#ours.abandon(standing);
      return { kind: "gone", why: "unknown" };
    }
    // It may have been granted by its push after this place was read.
    if (place.is === "granted" || standing.state === "granted") {
      const token = tokenOf(standing.czxid);
      const { tokens, ttlMs } = standing.claim;
      const atLeast = standing.told ? standing.deadline : 0;
      standing.told = true;
      const validity = this.validity(standing, timing, ttlMs, atLeast);
      return { kind: "granted", token, tokens, ...validity };
    }
    const beatMs = place.position === 0 ? HEAD_BEAT_MS : BEAT_MS;
    standing.deadline = systemClock.now() + FORGIVEN_BEATS * beatMs;
    const { position, closedMs } = place;
    if (closedMs > 0) this.#openLater(standing, closedMs);
    const nextHeartbeatMs = closedMs > 0 ? Math.min(beatMs, Math.ceil(closedMs)) : beatMs;
    const holders = await this.#views.holders(session, room, place.line, timing.until);
    return { kind: "queued", position, nextHeartbeatMs, holders };
  }

  /**
   * What the holder may believe ends before its node is taken away, by us or with the session. An answer
   * that is no renewal takes back nothing that was told before: it ends no earlier than `atLeast`.
   */
  validity(standing: Standing, { call, at }: Timing, wantedMs: number, atLeast = 0) {
    const { session } = standing;
    const ttlMs = Math.min(wantedMs, session.leaseMs);
    standing.deadline = Math.max(atLeast, at + ttlMs);
    return { since: call.startedAt - Math.max(0, at - session.since), ttlMs };
  }

  /** What is left, for whom nothing is to be changed by this call. */
  remaining({ session, deadline }: Standing, { call, at }: Timing) {
    const end = Math.min(deadline, session.since + session.leaseMs);
    return { since: call.startedAt, ttlMs: Math.max(0, end - at) };
  }

  /** Somebody before a waiter has left; granted, if nothing has to be asked any more. */
  async turn(standing: Standing, granted = false): Promise<void> {
    if (granted) this.#push(standing);
    if (standing.state !== "waiting" || this.#closed) return;
    try {
      const until = systemClock.now() + CLAIM_MS;
      const place = await this.#claims.lookNext(standing, until);
      if (place.is === "granted") this.#push(standing);
      else if (place.is === "queued" && place.closedMs > 0) {
        this.#openLater(standing, place.closedMs);
      }
    } catch (error) {
      // The heartbeat will find out.
      emit("failed", () => ({ during: "push", error }));
    }
  }

  #push(standing: Standing): void {
    if (standing.state !== "granted" || standing.told || this.#closed) return;
    // Whoever takes away what keeps it out is told of that as well, and may learn of its turn twice.
    standing.told = true;
    const { session, claim, aheadMs, ref, czxid } = standing;
    const now = systemClock.now();
    const { since } = session;
    // Good for one claim window from now, whenever the session was last confirmed.
    const ttlMs = Math.min(claim.ttlMs, session.leaseMs, now - since + CLAIM_MS);
    standing.deadline = now + CLAIM_MS;
    const token = tokenOf(czxid);
    const granted = { token, tokens: claim.tokens, since: since - aheadMs, ttlMs };
    this.#onGrant(ref, { kind: "granted", ...granted });
  }

  #openLater(standing: Standing, closedMs: number): void {
    systemClock.timer(closedMs + 1, () => void this.turn(standing), false);
  }

  /** A session that is over takes everything along, which is an answer and not a failure. */
  async unlessOver<T>(standing: Standing, work: () => Promise<T>): Promise<T | "missing"> {
    try {
      return await work();
    } catch (error) {
      if (standing.session.over && !this.#closed) return "missing";
      throw error;
    }
  }

  #refuseUnsupported({ mode, lockDelayMs }: Claim): void {
    const { modes, lockDelay } = this.#traits;
    if (modes.includes(mode) && (lockDelay || lockDelayMs === 0)) return;
    throw new UnsupportedError(`layout "${this.#terms.layout}" has exclusive locks only`);
  }
}

/** Asked again after a wait, which the compiler does not take into account. */
function isLeaving({ state }: Standing): boolean {
  return state === "leaving";
}
