import type { Claim, GrantRef } from "../../engine.js";
import type { Session } from "./wire/session.js";
import type { WatchListener } from "./wire/watches.js";

/**
 * One claim of ours as this process knows it, from before its node is made until it is surely gone.
 * leaving: nobody wants it any more, and its node may still be there.
 */
export class Standing {
  readonly claim: Claim;
  readonly hash: string;
  readonly room: string;
  readonly session: Session;
  state: "entering" | "waiting" | "granted" | "leaving" = "entering";
  /** Settles when its node was made, or was not. */
  entered: Promise<unknown> = Promise.resolve();
  path: string | null = null;
  czxid = 0n;
  /** When its node was made, by the leader's clock. */
  madeAt = 0n;
  /** Whether there may be a node that we never heard of. */
  doubtful = false;
  revoked = false;
  marker: string | null = null;
  /** Unless core is heard of by then, it is over; on systemClock. */
  deadline = Infinity;
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

  constructor(claim: Claim, hash: string, room: string, session: Session, aheadMs: number) {
    this.claim = claim;
    this.hash = hash;
    this.room = room;
    this.session = session;
    this.aheadMs = aheadMs;
  }

  get ref(): GrantRef {
    return { resource: this.claim.resource, grantId: this.claim.grantId };
  }

  get name(): string {
    return this.path?.slice(this.room.length + 1) ?? "";
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
