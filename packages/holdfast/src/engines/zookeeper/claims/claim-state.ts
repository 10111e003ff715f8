import { systemClock } from "../../../core/runtime/clock.js";
import type { Claim, GrantRef } from "../../../engine.js";
import type { LeaderTime } from "../session/leader-time.js";
import type { Session } from "../wire/session.js";
import type { WatchListener } from "../wire/watches.js";
import type { LeftNode } from "./lock-delays.js";

/**
 * What this process knows about one of its claims, from before its node is made until it is surely
 * gone. leaving: nobody wants the claim any more, but its node may still exist.
 */
export class ClaimState {
  readonly claim: Claim;
  readonly hash: string;
  readonly resourcePath: string;
  readonly session: Session;
  state: "entering" | "waiting" | "granted" | "leaving" = "entering";
  /** Settles when the attempt to make its node is over. */
  entered: Promise<unknown> = Promise.resolve();
  path: string | null = null;
  czxid = 0n;
  #madeAt: LeaderTime | null = null;
  #knownAt = 0;
  #writes = 0;
  /** Whether a node may exist of which we got no answer. */
  doubtful = false;
  revoked = false;
  /** The index of the token in use, as its node says. */
  index = 0;
  /** The data and version of its node when it was last read with a watch. */
  data: Buffer = Buffer.alloc(0);
  version = 0;
  /** The order of the latest renewal that took effect. */
  order = 0;
  marker: string | null = null;
  /** The claim is over unless core is heard from before this instant of systemClock. */
  deadline = Infinity;
  /**
   * How many releases of it are under way. Only they may delete its node: otherwise they would find
   * nothing, and answer that the grant was lost.
   */
  releases = 0;
  /** By how much systemClock is ahead of core's clock, or slightly more. */
  aheadMs: number;
  /** Whether our own node is watched. */
  ownWatched = false;
  watchOwnFrom = Infinity;
  watchingOwn: Promise<boolean> | null = null;
  /** Watches on members before a waiter, and on its own node if it is next or holds. */
  readonly watching = new Map<string, WatchListener>();
  /** The only member before a waiter. No other can come before it: newcomers are behind. */
  lastBefore: string | null = null;
  /** A member before it that leaves no marker, however it ends. */
  quiet: string | null = null;
  /** Whether core knows of its grant, from an answer or a push. After that no push shortens it. */
  told = false;
  /** By name, grants before it that were left behind. */
  readonly leftNodes = new Map<string, LeftNode>();

  constructor(claim: Claim, hash: string, resourcePath: string, session: Session, aheadMs: number) {
    this.claim = claim;
    this.hash = hash;
    this.resourcePath = resourcePath;
    this.session = session;
    this.aheadMs = aheadMs;
  }

  /** Its node was made at ctime by the leader's clock, and we learn of it now. */
  made(path: string, czxid: bigint, ctime: bigint): void {
    this.path = path;
    this.czxid = czxid;
    this.#madeAt = { atMs: ctime, zxid: czxid };
    this.#knownAt = systemClock.now();
  }

  /** An instant that is no later than the leader's clock now. */
  get leaderNow(): LeaderTime | null {
    if (this.#madeAt === null) return null;
    const { atMs, zxid } = this.#madeAt;
    return { atMs: atMs + BigInt(Math.floor(systemClock.now() - this.#knownAt)), zxid };
  }

  /** Whether a change of our own node may be our own write. */
  get isWriting(): boolean {
    return this.#writes > 0;
  }

  /** The servers notify watchers of a change before they answer the client that made it. */
  async writing<T>(work: () => Promise<T>): Promise<T> {
    this.#writes++;
    try {
      return await work();
    } finally {
      this.#writes--;
    }
  }

  get ref(): GrantRef {
    return { resource: this.claim.resource, grantId: this.claim.grantId };
  }

  get name(): string {
    return this.path?.slice(this.resourcePath.length + 1) ?? "";
  }

  /** Removes the watch on its own node. */
  unwatchOwn(): void {
    this.ownWatched = false;
    const listener = this.path === null ? undefined : this.watching.get(this.path);
    if (this.path === null || listener === undefined) return;
    this.watching.delete(this.path);
    this.session.unwatch(this.path, listener);
  }

  /** Removes all watches except those to keep. */
  unwatch(keep: ReadonlySet<string> = new Set()): void {
    for (const [path, listener] of [...this.watching]) {
      if (keep.has(path)) continue;
      this.watching.delete(path);
      this.session.unwatch(path, listener);
    }
  }
}
