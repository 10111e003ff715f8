import { systemClock } from "../../../core/runtime/clock.js";
import type { Call, Claim, EngineTraits, Gone, Granted, Queued } from "../../../engine.js";
import { EngineError, limitMismatch, UnsupportedError } from "../../../errors.js";
import type { Views } from "../inspect/views.js";
import { tokenOf } from "../node-record.js";
import type { ZookeeperTerms } from "../options.js";
import { hashOf, pathOf } from "../paths.js";
import type { Sessions } from "../session/sessions.js";
import { ClaimState } from "./claim-state.js";
import type { Claims, QueuePlace } from "./claims.js";
import type { OwnClaims } from "./own-claims.js";
import type { PushedGrants } from "./pushed-grants.js";
import { isCancelled, otherLimit, type Queue, wouldWait } from "./queue.js";

// Watches notify; heartbeats find what a watch missed. The head of the queue beats more often.
const HEAD_BEAT_MS = 1_000;
const BEAT_MS = 2_000;
const FORGIVEN_BEATS = 3;
/** After a lost answer core may repeat the claim with the same grantId for this long. */
const REPEAT_MS = 5_000;

/** The times of a call on systemClock: core's clock may be another one. */
export interface Timing {
  readonly call: Call;
  readonly at: number;
  readonly until: number;
}

interface Tools {
  readonly sessions: Sessions;
  readonly claims: Claims;
  readonly ownClaims: OwnClaims;
  readonly views: Views;
  readonly pushedGrants: PushedGrants;
}

/**
 * Answers core's calls about our claims: their place in the queue, and how long a grant is valid.
 */
export class ClaimService {
  readonly #terms: ZookeeperTerms;
  readonly #traits: EngineTraits;
  readonly #sessions: Sessions;
  readonly #claims: Claims;
  readonly #ownClaims: OwnClaims;
  readonly #views: Views;
  readonly #pushedGrants: PushedGrants;
  #closed = false;

  constructor(
    terms: ZookeeperTerms,
    traits: EngineTraits,
    { sessions, claims, ownClaims, views, pushedGrants }: Tools,
  ) {
    this.#terms = terms;
    this.#traits = traits;
    this.#sessions = sessions;
    this.#claims = claims;
    this.#ownClaims = ownClaims;
    this.#views = views;
    this.#pushedGrants = pushedGrants;
  }

  close(): void {
    this.#closed = true;
  }

  /**
   * Handles a new or repeated claim. Unless inQueue is true, it leaves again if it would have to
   * wait.
   */
  async claim(claim: Claim, timing: Timing, inQueue: boolean): Promise<Granted | Queued | Gone> {
    this.#refuseUnsupported(claim);
    const known = this.#ownClaims.find(claim);
    if (known !== null && known.state !== "leaving") {
      const place = await this.look(known, timing);
      const over = place.is === "missing" && known.session.over;
      // The earlier call may have been given up since. Its node still belongs to this claim.
      if (!over && !isLeaving(known)) return this.answer(known, place, timing);
    }
    const hash = hashOf(claim.grantId);
    const resourcePath = pathOf(this.#terms.location, claim.resource);
    if (this.#ownClaims.isCancelled(hash) || this.#ownClaims.leftUntil(claim) !== null) {
      return { kind: "gone", why: "unknown" };
    }
    const pick = () => this.#sessions.for(claim.ttlMs);
    return this.#sessions.on(pick, async (session) => {
      session.refresh();
      const aheadMs = timing.at - timing.call.startedAt;
      const claimState = new ClaimState(claim, hash, resourcePath, session, aheadMs);
      claimState.doubtful = known !== null;
      // Added before any request: if the claim is repeated during the call, it must be found.
      this.#ownClaims.add(claimState);
      const place = await this.#enter(claimState, timing, inQueue);
      if ("kind" in place) return place;
      const answer = await this.answer(claimState, place, timing);
      if (inQueue || answer.kind !== "queued") return answer;
      await this.#ownClaims.release(claimState.ref, resourcePath, 0, timing.until);
      return answer;
    });
  }

  async #enter(
    claimState: ClaimState,
    timing: Timing,
    inQueue: boolean,
  ): Promise<QueuePlace | Queued | Gone> {
    const { until } = timing;
    const entering = inQueue
      ? this.#claims.enter(claimState, until)
      : this.#enterUnlessRefused(claimState, timing);
    claimState.entered = entering.catch(() => {});
    try {
      return await entering;
    } catch (error) {
      const leavesNothing = claimState.path === null && !claimState.doubtful;
      if (leavesNothing) this.#ownClaims.forget(claimState);
      else if (error instanceof EngineError) this.#ownClaims.abandon(claimState, REPEAT_MS);
      else await this.#ownClaims.release(claimState.ref, claimState.resourcePath, 0, until);
      throw error;
    }
  }

  async #enterUnlessRefused(
    claimState: ClaimState,
    timing: Timing,
  ): Promise<QueuePlace | Queued | Gone> {
    const queue = await this.#claims.resourceNodes.queue(
      claimState.session,
      claimState.resourcePath,
      timing.until,
    );
    const refused = await this.#refused(claimState, queue, timing);
    if (refused === null) return this.#claims.enter(claimState, timing.until);
    this.#ownClaims.forget(claimState);
    return refused;
  }

  /** The answer that needs no write: gone or busy; null if the claim must enter the queue. */
  async #refused(
    { claim, hash, session, resourcePath }: ClaimState,
    queue: Queue,
    { until }: Timing,
  ): Promise<Queued | Gone | null> {
    const { resource, mode, limit } = claim;
    if (isCancelled(queue, hash)) return { kind: "gone", why: "unknown" };
    const others = queue.members.filter(({ left }) => left === null);
    const other = mode === "shared" ? otherLimit(others, limit) : undefined;
    if (other !== undefined) throw limitMismatch(resource, limit, other);
    if (!wouldWait(queue, mode, limit)) return null;
    const holders = await this.#views.holders(session, resourcePath, queue, until);
    const position = queue.members.length - queue.holding;
    return { kind: "queued", position, nextHeartbeatMs: HEAD_BEAT_MS, holders };
  }

  /** The place of a claim of ours. `queues` lets several claims share one reading of a queue. */
  async look(claimState: ClaimState, timing: Timing, queues?: Map<string, Promise<Queue>>) {
    const { session, resourcePath } = claimState;
    claimState.aheadMs = Math.min(claimState.aheadMs, timing.at - timing.call.startedAt);
    // This call shows that core is alive, whether or not the servers can be reached.
    const heardUntil = timing.at + FORGIVEN_BEATS * BEAT_MS;
    if (claimState.state === "waiting")
      claimState.deadline = Math.max(claimState.deadline, heardUntil);
    await claimState.entered;
    return this.unlessOver(claimState, async (): Promise<QueuePlace> => {
      const queue =
        queues?.get(resourcePath) ??
        this.#claims.resourceNodes.queue(session, resourcePath, timing.until);
      queues?.set(resourcePath, queue);
      // The claim is given up, but only the servers can say that its node is gone.
      if (claimState.state === "leaving") return { is: (await queue) && "missing" };
      return this.#claims.look(claimState, timing.until, queue);
    }).then((place): QueuePlace => (place === "missing" ? { is: "missing" } : place));
  }

  async answer(
    claimState: ClaimState,
    place: QueuePlace,
    timing: Timing,
  ): Promise<Granted | Queued | Gone> {
    const { session, resourcePath } = claimState;
    if (place.is === "revoked") return { kind: "gone", why: "revoked" };
    if (claimState.state === "leaving") {
      // Core will make a new claim, which must not wait behind this one.
      this.#ownClaims.abandon(claimState);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "missing") {
      this.#ownClaims.forget(claimState);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "cancelled") {
      this.#ownClaims.abandon(claimState);
      return { kind: "gone", why: "unknown" };
    }
    // A push may have granted the claim after this place was read.
    if (place.is === "granted" || claimState.state === "granted") {
      const token = tokenOf(claimState.czxid);
      const { tokens, ttlMs } = claimState.claim;
      const atLeast = claimState.told ? claimState.deadline : 0;
      claimState.told = true;
      const validity = this.validity(claimState, timing, ttlMs, atLeast);
      return { kind: "granted", token, tokens, ...validity };
    }
    const beatMs = place.position === 0 ? HEAD_BEAT_MS : BEAT_MS;
    claimState.deadline = systemClock.now() + FORGIVEN_BEATS * beatMs;
    const { position, closedMs } = place;
    if (closedMs > 0) this.#pushedGrants.lookLater(claimState, closedMs);
    const nextHeartbeatMs = closedMs > 0 ? Math.min(beatMs, Math.ceil(closedMs)) : beatMs;
    const holders = await this.#views.holders(session, resourcePath, place.queue, timing.until);
    return { kind: "queued", position, nextHeartbeatMs, holders };
  }

  /**
   * The validity that core is told ends before the node is deleted, by us or with the session. An
   * answer that is not a renewal does not shorten what core was told before: it ends no earlier
   * than `atLeast`.
   */
  validity(claimState: ClaimState, { call, at }: Timing, wantedMs: number, atLeast = 0) {
    const { session } = claimState;
    const ttlMs = Math.min(wantedMs, session.leaseMs);
    claimState.deadline = Math.max(atLeast, at + ttlMs);
    return { since: call.startedAt - Math.max(0, at - session.since), ttlMs };
  }

  /** The remaining validity, for a call that changes nothing. */
  remaining({ session, deadline }: ClaimState, { call, at }: Timing) {
    const end = Math.min(deadline, session.since + session.leaseMs);
    return { since: call.startedAt, ttlMs: Math.max(0, end - at) };
  }

  /**
   * A session that is over has lost all its nodes, which is the answer "missing" and not a failure.
   */
  async unlessOver<T>(claimState: ClaimState, work: () => Promise<T>): Promise<T | "missing"> {
    try {
      return await work();
    } catch (error) {
      if (claimState.session.over && !this.#closed) return "missing";
      throw error;
    }
  }

  #refuseUnsupported({ mode, lockDelayMs }: Claim): void {
    const { modes, lockDelay } = this.#traits;
    if (modes.includes(mode) && (lockDelay || lockDelayMs === 0)) return;
    throw new UnsupportedError(`layout "${this.#terms.layout}" has exclusive locks only`);
  }
}

/** The state may change during an await, which the compiler does not consider. */
function isLeaving({ state }: ClaimState): boolean {
  return state === "leaving";
}
