import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Gone, GrantRef, Released } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { emit } from "../../../events.js";
import { inDoubt } from "../failure.js";
import { hashOf } from "../paths.js";
import type { Sessions } from "../session/sessions.js";
import { remove } from "../wire/operations.js";
import type { Session } from "../wire/session.js";
import type { ClaimState } from "./claim-state.js";
import type { Claims } from "./claims.js";
import { markerOf } from "./queue.js";

const TICK_MS = 100;
const AGAIN_MS = 1_000;
/** Longer than a request can lie in the socket of a server that hangs. */
const DOUBT_MS = 120_000;
const DOUBT_LOOK_MS = 2_000;

interface Tombstone {
  readonly path: string;
  readonly resourcePath: string;
  readonly session: Session;
  readonly until: number;
  /** When to look for a node that appears after a lost answer: nobody else would delete it. */
  lookAt: number;
}

interface LeftGrant {
  readonly resource: string;
  readonly endsAt: number;
}

/**
 * The claims of this process. A session keeps all its nodes alive, even those that nobody wants any
 * more. So the node of a claim is deleted here if core is not heard from in time, or could not be
 * told.
 */
export class OwnClaims {
  readonly #claims: Claims;
  readonly #sessions: Sessions;
  readonly #claimStates = new Map<string, ClaimState>();
  readonly #tombstones = new Map<string, Tombstone>();
  /** By grantId, grants that this process left behind, and until when they last. */
  readonly #left = new Map<string, LeftGrant>();
  #timer: Timer | null = null;
  #closed = false;

  constructor(claims: Claims, sessions: Sessions) {
    this.#claims = claims;
    this.#sessions = sessions;
  }

  find({ resource, grantId }: GrantRef): ClaimState | null {
    const claimState = this.#claimStates.get(grantId);
    return claimState?.claim.resource === resource ? claimState : null;
  }

  add(claimState: ClaimState): void {
    this.#claimStates.set(claimState.claim.grantId, claimState);
    this.#wake();
  }

  /** Stops tracking the claim, and removes its watches. */
  forget(claimState: ClaimState): void {
    claimState.state = "leaving";
    claimState.unwatch();
    const { grantId } = claimState.claim;
    if (this.#claimStates.get(grantId) === claimState) this.#claimStates.delete(grantId);
  }

  /** The grant was left behind: it has no holder, and keeps others out until endsAt. */
  left(claimState: ClaimState, endsAt: number): void {
    this.forget(claimState);
    const { resource, grantId } = claimState.claim;
    this.#left.set(grantId, { resource, endsAt });
    this.#wake();
  }

  /** Until when a grant that was left behind here keeps others out; null if there is none. */
  leftUntil({ resource, grantId }: GrantRef): number | null {
    const left = this.#left.get(grantId);
    return left?.resource === resource ? left.endsAt : null;
  }

  /** Marks a claim for deletion, now or as soon as the servers can be reached. */
  abandon(claimState: ClaimState, inMs = 0): void {
    claimState.state = "leaving";
    claimState.deadline = systemClock.now() + inMs;
    this.#wake();
  }

  /** Forgets and returns all claims of a session that is over. */
  endOf(session: Session): ClaimState[] {
    const ended = [...this.#claimStates.values()].filter((one) => one.session === session);
    for (const claimState of ended) this.forget(claimState);
    for (const [hash, tombstone] of this.#tombstones) {
      if (tombstone.session === session) this.#tombstones.delete(hash);
    }
    return ended;
  }

  isCancelled(hash: string): boolean {
    return this.#tombstones.has(hash);
  }

  /** Ends the grant or the waiter with exactly this grantId. */
  async release(
    ref: GrantRef,
    resourcePath: string,
    tombstoneMs: number,
    until: number,
  ): Promise<Released | Gone> {
    const claimState = this.find(ref);
    if (claimState === null)
      return this.#releaseByHash(ref, resourcePath, tombstoneMs, null, until);
    const isDoubtful =
      claimState.doubtful || claimState.path === null || claimState.state === "leaving";
    const forMs = Math.max(tombstoneMs, isDoubtful ? DOUBT_MS : 0);
    this.abandon(claimState);
    claimState.unwatch();
    claimState.releases++;
    try {
      return await this.#release(claimState, forMs, until);
    } catch (error) {
      this.abandon(claimState, AGAIN_MS);
      const isUnsent = error instanceof EngineError && error.effect === "none" && error.retryable;
      // This process deletes the node soon, so a repeated release may find that it is gone.
      throw isUnsent ? inDoubt(error) : error;
    } finally {
      claimState.releases--;
    }
  }

  async #release(claimState: ClaimState, forMs: number, until: number): Promise<Released | Gone> {
    const { ref, resourcePath, session, path, marker } = claimState;
    if (forMs > 0 || path === null || session.over) {
      return this.#releaseByHash(ref, resourcePath, forMs, claimState, until);
    }
    try {
      if (await this.#claims.resourceNodes.leave(session, path, marker, until)) {
        this.forget(claimState);
        return { kind: "released" };
      }
    } catch (error) {
      if (!session.over) throw error;
    }
    return this.#releaseByHash(ref, resourcePath, 0, claimState, until);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    for (const claimState of [...this.#claimStates.values()]) this.forget(claimState);
    this.#tombstones.clear();
  }

  /** Ends every node of this grantId, whichever session made it. */
  async #releaseByHash(
    ref: GrantRef,
    resourcePath: string,
    forMs: number,
    claimState: ClaimState | null,
    until: number,
  ): Promise<Released | Gone> {
    const hash = hashOf(ref.grantId);
    const own = claimState?.session;
    const pick = () => (own === undefined || own.over ? this.#sessions.any() : own);
    const { released, queue } = await this.#sessions.on(pick, async (session) => {
      if (forMs > 0) {
        const path = await this.#claims.resourceNodes.makeTombstone(
          session,
          resourcePath,
          hash,
          until,
        );
        const now = systemClock.now();
        const lookAt = claimState?.doubtful ? now + AGAIN_MS : Infinity;
        this.#tombstones.set(hash, { path, resourcePath, session, until: now + forMs, lookAt });
        this.#wake();
      }
      return this.#sweep(hash, { session, resourcePath }, until);
    });
    if (claimState !== null) this.forget(claimState);
    if (released) return { kind: "released" };
    return { kind: "gone", why: queue.members.length > 0 ? "replaced" : "expired" };
  }

  /** Deletes every node of this grantId. */
  async #sweep(
    hash: string,
    { session, resourcePath }: Pick<Tombstone, "session" | "resourcePath">,
    until: number,
  ) {
    const { resourceNodes } = this.#claims;
    const queue = await resourceNodes.queue(session, resourcePath, until);
    let released = false;
    const own = queue.members.filter((one) => one.hash === hash && one.left === null);
    for (const one of own) {
      const marker = markerOf(queue, resourcePath, one);
      released =
        (await resourceNodes.leave(session, `${resourcePath}/${one.name}`, marker, until)) ||
        released;
    }
    return { released, queue };
  }

  #wake(): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = systemClock.timer(TICK_MS, () => this.#tick(), false);
  }

  #tick(): void {
    this.#timer = null;
    const now = systemClock.now();
    const inUse = new Set<Session>();
    for (const claimState of this.#claimStates.values()) {
      inUse.add(claimState.session);
      if (claimState.session.over) this.forget(claimState);
      else if (now >= claimState.deadline && claimState.releases === 0)
        this.#deleteAbandoned(claimState, now);
      else if (now >= claimState.watchOwnFrom && claimState.state === "granted")
        this.#watchGrant(claimState);
    }
    for (const [hash, tombstone] of this.#tombstones) {
      inUse.add(tombstone.session);
      if (now >= tombstone.lookAt || (now >= tombstone.until && tombstone.lookAt < Infinity)) {
        tombstone.lookAt = now + DOUBT_LOOK_MS;
        this.#sweep(hash, tombstone, now + AGAIN_MS).catch(() => {});
      }
      if (now < tombstone.until) continue;
      this.#tombstones.delete(hash);
      // If the deletion fails, the tombstone ends with the session.
      tombstone.session.ask(remove(tombstone.path), now + AGAIN_MS).catch(() => {});
    }
    for (const [grantId, { endsAt }] of this.#left) if (now >= endsAt) this.#left.delete(grantId);
    this.#sessions.sweep((session) => inUse.has(session));
    if (inUse.size + this.#left.size > 0) this.#wake();
  }

  #watchGrant(claimState: ClaimState): void {
    claimState.watchOwnFrom = Infinity;
    const until = systemClock.now() + AGAIN_MS;
    this.#claims.nodeWatches.watchGrant(claimState, until).catch(() => {
      claimState.watchOwnFrom = until;
    });
  }

  /**
   * Deletes the node and keeps its marker: a holder that core gave up without a release is lost.
   */
  #deleteAbandoned(claimState: ClaimState, now: number): void {
    const { session, path, doubtful, resourcePath, ref } = claimState;
    this.abandon(claimState, AGAIN_MS);
    claimState.unwatch();
    const until = now + AGAIN_MS;
    const work =
      path === null || doubtful
        ? this.#releaseByHash(ref, resourcePath, DOUBT_MS, claimState, until)
        : this.#claims.resourceNodes
            .leave(session, path, null, until)
            .then(() => this.forget(claimState));
    work.catch((error: unknown) => {
      if (error instanceof EngineError && error.retryable) return;
      emit("failed", () => ({ during: "clean-up", error, resource: ref.resource }));
    });
  }
}
