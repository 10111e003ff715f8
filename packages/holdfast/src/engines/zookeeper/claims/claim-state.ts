import { systemClock } from "../../../core/runtime/clock.js";
import type { Claim, GrantRef } from "../../../engine.js";
import type { LeaderTime } from "../session/leader-time.js";
import type { Session } from "../wire/session.js";
import type { WatchListener } from "../wire/watches.js";
import type { LeftBehind } from "./lock-delay.js";

/**
 * One claim of ours as this process knows it, from before its node is made until it is surely gone.
 * leaving: nobody wants it any more, and its node may still be there.
 */
export class ClaimState {
  readonly claim: Claim;
  readonly hash: string;
  readonly resourcePath: string;
  readonly session: Session;
  state: "entering" | "waiting" | "granted" | "leaving" = "entering";
  /** Settles when its node was made, or was not. */
  entered: Promise<unknown> = Promise.resolve();
  path: string | null = null;
  czxid = 0n;
  #madeAt: LeaderTime | null = null;
  #knownAt = 0;
  #writes = 0;
  /** Whether there may be a node that we never heard of. */
  doubtful = false;
  revoked = false;
  /** Which of its tokens is in use, as its node says. */
  index = 0;
  /** What its node says, and in which version, as of when it was last watched. */
  data: Buffer = Buffer.alloc(0);
  version = 0;
  /** The number of the latest renewal that was carried out. */
  order = 0;
  marker: string | null = null;
  /** Unless core is heard of by then, it is over; on systemClock. */
  deadline = Infinity;
  /**
   * How many releases of it are under way. Meanwhile its node is theirs to take away: whoever else did
   * would make them find nothing, and say that the grant was lost.
   */
  releases = 0;
  /** How much systemClock is ahead of core's clock, or a little more. */
  aheadMs: number;
  /** Whether a change of our own node would be told to us. */
  guarded = false;
  guardFrom = Infinity;
  guarding: Promise<boolean> | null = null;
  /** Those before a waiter, and its own node where it is the next or holds. */
  readonly watching = new Map<string, WatchListener>();
  /** The only one that stands before a waiter. Nobody else will: who comes stands behind. */
  lastBefore: string | null = null;
  /** One before it that leaves no marker, however it ends. */
  quiet: string | null = null;
  /** Whether core was told of its grant, by an answer or by a push. After that no push shortens it. */
  told = false;
  /** Those before it that were left behind, by their names. */
  readonly lefts = new Map<string, LeftBehind>();

  constructor(claim: Claim, hash: string, resourcePath: string, session: Session, aheadMs: number) {
    this.claim = claim;
    this.hash = hash;
    this.resourcePath = resourcePath;
    this.session = session;
    this.aheadMs = aheadMs;
  }

  /** Its node was made then, by the leader's clock, and we know it now. */
  made(path: string, czxid: bigint, ctime: bigint): void {
    this.path = path;
    this.czxid = czxid;
    this.#madeAt = { atMs: ctime, zxid: czxid };
    this.#knownAt = systemClock.now();
  }

  /** No later than what the leader's clock says now. */
  get leaderNow(): LeaderTime | null {
    if (this.#madeAt === null) return null;
    const { atMs, zxid } = this.#madeAt;
    return { atMs: atMs + BigInt(Math.floor(systemClock.now() - this.#knownAt)), zxid };
  }

  /** Whether a change of our own node may be our own doing. */
  get isWriting(): boolean {
    return this.#writes > 0;
  }

  /** The servers tell who watches a node of a change before they answer whoever made it. */
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

  /** Stops listening for changes of its own node. */
  unguard(): void {
    this.guarded = false;
    const listener = this.path === null ? undefined : this.watching.get(this.path);
    if (this.path === null || listener === undefined) return;
    this.watching.delete(this.path);
    this.session.unwatch(this.path, listener);
  }

  /** Stops listening for those before it. */
  unwatch(keep: ReadonlySet<string> = new Set()): void {
    for (const [path, listener] of [...this.watching]) {
      if (keep.has(path)) continue;
      this.watching.delete(path);
      this.session.unwatch(path, listener);
    }
  }
}
