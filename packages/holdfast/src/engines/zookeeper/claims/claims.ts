import { systemClock } from "../../../core/runtime/clock.js";
import type { Claim } from "../../../engine.js";
import { EngineError, limitMismatch } from "../../../errors.js";
import { inDoubt, withoutEffect } from "../failure.js";
import { type Layout, markerName, type QueueMember } from "../layout.js";
import { tokenOf, writeRecord } from "../node-record.js";
import { check } from "../wire/operations.js";
import type { ClaimState } from "./claim-state.js";
import { LockDelays } from "./lock-delays.js";
import { NodeWatches } from "./node-watches.js";
import { PredecessorWatches } from "./predecessor-watches.js";
import { blockers, isCancelled, otherLimit, type Queue } from "./queue.js";
import type { ResourceNodes } from "./resource-nodes.js";

const MOST_LOOKS = 20;
const MOST_ENTRIES = 5;
/** The node of a grant that lives shorter than this is not watched. */
const WATCH_AFTER_MS = 100;

export type QueuePlace =
  | { readonly is: "granted" }
  | {
      readonly is: "queued";
      readonly position: number;
      readonly queue: Queue;
      readonly closedMs: number;
    }
  | { readonly is: "missing" }
  | { readonly is: "revoked" }
  | { readonly is: "cancelled" };

/** Enters our claims into the queue, and finds their places in it. */
export class Claims {
  readonly resourceNodes: ResourceNodes;
  readonly lockDelays = new LockDelays();
  readonly nodeWatches: NodeWatches;
  readonly #layout: Layout;
  readonly #predecessorWatches: PredecessorWatches;

  /**
   * onTurn: a member before a waiter left; granted if the waiter waited for nothing else.
   * onChange: the claim's own node was changed or deleted.
   */
  constructor(
    resourceNodes: ResourceNodes,
    layout: Layout,
    onTurn: (claimState: ClaimState, granted: boolean) => void,
    onChange: (claimState: ClaimState) => void,
  ) {
    this.resourceNodes = resourceNodes;
    this.#layout = layout;
    this.nodeWatches = new NodeWatches(onChange);
    this.#predecessorWatches = new PredecessorWatches(this.nodeWatches, onTurn);
  }

  /**
   * Makes the node of a claim and finds its place. If the answer is lost, the node is found by its
   * name: as long as the session lives, every claim gets an answer.
   */
  async enter(claimState: ClaimState, until: number): Promise<QueuePlace> {
    const { claim, hash, resourcePath, session } = claimState;
    const stem = this.#layout.stem(claim, hash);
    const data = writeRecord(claim, Math.min(claim.ttlMs, session.leaseMs));
    for (let tries = 1; ; tries++) {
      try {
        if (claimState.path === null && claimState.doubtful) {
          const queue = await this.resourceNodes.queue(session, resourcePath, until);
          if (isCancelled(queue, hash)) return { is: "cancelled" };
          await this.#recover(claimState, queue, until);
        }
        if (claimState.path !== null) return await this.look(claimState, until);
        const { made, queue } = await this.resourceNodes.enter(
          session,
          resourcePath,
          stem,
          data,
          until,
        );
        this.#own(claimState, made.path, made.stat.czxid, made.stat.ctime);
        if (queue !== null) return await this.#place(claimState, queue, until, true);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (session.expired) throw withoutEffect(error);
        claimState.doubtful ||= error.effect === "unknown";
        const again = error.retryable && !session.over && systemClock.now() < until;
        if (!again || tries === MOST_ENTRIES) throw claimState.doubtful ? inDoubt(error) : error;
      }
    }
  }

  /** The current place, from a queue that was just read or that is read now. */
  async look(claimState: ClaimState, until: number, queue?: Promise<Queue>): Promise<QueuePlace> {
    const { session, resourcePath } = claimState;
    const now = await (queue ?? this.resourceNodes.queue(session, resourcePath, until));
    return this.#place(claimState, now, until);
  }

  /**
   * The place after a member before it left. The claim is probably next, and then its own node
   * must be read too. Both requests are sent together, so that a hand-over is one round trip.
   */
  async lookNext(claimState: ClaimState, until: number): Promise<QueuePlace> {
    const queue = this.resourceNodes.queueHere(claimState.session, claimState.resourcePath, until);
    // A caller that needs this answer asks again, and then gets the error.
    const own = this.nodeWatches.verify(claimState, until).catch(() => null);
    const place = await this.look(claimState, until, queue);
    if (place.is === "granted") return place;
    await own;
    if (claimState.state === "waiting" && claimState.lastBefore === null) claimState.unwatchOwn();
    return place;
  }

  #own(claimState: ClaimState, path: string, czxid: bigint, madeAt: bigint): void {
    tokenOf(czxid);
    claimState.made(path, czxid, madeAt);
    if (claimState.state === "entering") claimState.state = "waiting";
  }

  /** Finds a node that was made although its answer was lost. */
  async #recover(claimState: ClaimState, queue: Queue, until: number): Promise<void> {
    const { session, resourcePath, hash } = claimState;
    const own = queue.members.find((member) => member.hash === hash);
    if (own === undefined) return;
    const [found] = await this.resourceNodes.read(session, resourcePath, [own.name], until);
    if (found !== undefined) {
      this.#own(claimState, found.path, found.stat.czxid, found.stat.ctime);
    }
  }

  async #place(
    claimState: ClaimState,
    first: Queue,
    until: number,
    fresh = false,
  ): Promise<QueuePlace> {
    const { session, resourcePath, hash } = claimState;
    let queue = first;
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const at = queue.at.get(claimState.name) ?? -1;
      if (isCancelled(queue, hash)) return { is: "cancelled" };
      if (at < 0) return { is: "missing" };
      if (claimState.state === "granted") return this.#still(claimState, until);
      const left = await this.#leftBehind(claimState, queue.members.slice(0, at), until);
      if (left === null) {
        queue = await this.resourceNodes.queueHere(session, resourcePath, until);
        continue;
      }
      this.#refuseOtherLimit(claimState.claim, queue.members, at);
      const before = blockers(queue.members, at);
      if (before.length === 0) return this.#grant(claimState, queue, until, fresh);
      // Then its end alone gives us the turn, provided that our own node is watched too.
      const isLast = at === 1 && queue.markers.length === 0 && claimState.claim.lockDelayMs === 0;
      if (await this.#predecessorWatches.watch(claimState, before, isLast, until)) {
        const closedMs = Math.min(...before.map(({ name }) => left.get(name) ?? Infinity));
        const position = at - queue.holding;
        return { is: "queued", position, queue, closedMs: closedMs === Infinity ? 0 : closedMs };
      }
      queue = await this.resourceNodes.queueHere(session, resourcePath, until);
    }
    throw new EngineError("the queue moves faster than it can be read", {
      ...{ effect: "unknown", retryable: true },
    });
  }

  /**
   * The remaining times, by name, of grants before it that were left behind. Null if one of them
   * was gone or was over and deleted: then the queue must be read again.
   */
  async #leftBehind(
    claimState: ClaimState,
    before: readonly QueueMember[],
    until: number,
  ): Promise<ReadonlyMap<string, number> | null> {
    const { session, resourcePath, leaderNow, leftNodes } = claimState;
    const names = before.filter(({ left }) => left !== null).map(({ name }) => name);
    const left = new Map<string, number>();
    if (names.length === 0 || leaderNow === null) return left;
    const unread = names.filter((name) => !leftNodes.has(name));
    const found = await this.resourceNodes.read(session, resourcePath, unread, until);
    if (found.length < unread.length) return null;
    for (const one of found) leftNodes.set(one.path.slice(resourcePath.length + 1), one);
    for (const name of names)
      left.set(name, this.lockDelays.leftBehindMs(leftNodes.get(name)!, leaderNow));
    const over = names.filter((name) => left.get(name)! <= 0);
    for (const name of over)
      await this.resourceNodes.leave(session, `${resourcePath}/${name}`, null, until);
    return over.length > 0 ? null : left;
  }

  async #still(claimState: ClaimState, until: number): Promise<QueuePlace> {
    const held = await this.nodeWatches.verify(claimState, until);
    return held === "held" ? { is: "granted" } : { is: held };
  }

  async #grant(
    claimState: ClaimState,
    queue: Queue,
    until: number,
    fresh: boolean,
  ): Promise<QueuePlace> {
    const { session, resourcePath, claim, leaderNow, czxid, path } = claimState;
    const { orphans } = queue;
    if (orphans.length > 0) {
      const closedMs = await this.lockDelays.leftMs(
        session,
        resourcePath,
        orphans,
        leaderNow,
        until,
      );
      if (closedMs > 0) return { is: "queued", position: 0, queue, closedMs };
      await this.lockDelays.open(session, resourcePath, orphans, until);
    }
    if (claim.lockDelayMs > 0 && path !== null) {
      const { number } = queue.members[queue.at.get(claimState.name)!]!;
      const holder = { hash: claimState.hash, czxid, number };
      claimState.marker = `${resourcePath}/${markerName(claim.lockDelayMs, holder)}`;
      const marked = await this.resourceNodes.mark(session, check(path), claimState.marker, until);
      if (!marked) return { is: "missing" };
    }
    // A waiter may have been revoked before it knew that it holds. For a new claim there was no
    // time.
    if (!fresh) {
      const held = await this.nodeWatches.verify(claimState, until);
      if (held !== "held") return { is: held };
    }
    if (claimState.state === "waiting") claimState.state = "granted";
    if (!claimState.ownWatched) claimState.watchOwnFrom = systemClock.now() + WATCH_AFTER_MS;
    const keep = path !== null && claimState.ownWatched ? new Set([path]) : undefined;
    claimState.unwatch(keep);
    return { is: "granted" };
  }

  #refuseOtherLimit(claim: Claim, members: readonly QueueMember[], at: number): void {
    if (claim.mode !== "shared") return;
    const other = otherLimit(members.slice(0, at), claim.limit);
    if (other !== undefined) throw limitMismatch(claim.resource, claim.limit, other);
  }
}
