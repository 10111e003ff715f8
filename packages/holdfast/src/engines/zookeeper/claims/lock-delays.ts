import { systemClock } from "../../../core/runtime/clock.js";
import { refusal } from "../failure.js";
import type { Marker } from "../layout.js";
import { elapsedMs, isSameClock, type LeaderTime } from "../session/leader-time.js";
import { CODES } from "../wire/codes.js";
import { getData, remove, setData } from "../wire/operations.js";
import type { Session } from "../wire/session.js";

const REMEMBERED = 1_000;
const SEEN = Buffer.from("seen");

/** The node of a grant that was left behind: for how long it lasts, and since when. */
export interface LeftNode {
  readonly path: string;
  readonly ttlMs: number;
  readonly since: LeaderTime;
}

/**
 * Lock-delays. The marker of a lost holder says how long the delay is, not when it began. The delay
 * counts from the moment when a client first saw that the holder is gone; that client changes the
 * marker, which records the time. A later client counts from there by the leader's clock, or from
 * its own first sight.
 */
export class LockDelays {
  readonly #firstSeen = new Map<string, number>();

  /** How long the resource stays closed; 0 if it is open. */
  async leftMs(
    session: Session,
    resourcePath: string,
    orphans: readonly Marker[],
    now: LeaderTime | null,
    until: number,
  ): Promise<number> {
    const left = orphans.map((orphan) =>
      this.#leftMs(session, `${resourcePath}/${orphan.name}`, orphan.lockDelayMs, now, until),
    );
    return Math.max(0, ...(await Promise.all(left)));
  }

  /**
   * The remaining time of a grant that was left behind, by the leader's clock or by our first
   * sight.
   */
  leftBehindMs({ path, ttlMs, since }: LeftNode, now: LeaderTime): number {
    return Math.min(this.#sinceFirstSight(path, ttlMs), ttlMs - elapsedMs(since, now));
  }

  /** Deletes the markers of delays that are over. */
  async open(session: Session, resourcePath: string, orphans: readonly Marker[], until: number) {
    for (const { name } of orphans) {
      const path = `${resourcePath}/${name}`;
      const { err } = await session.ask(remove(path), until);
      if (err !== CODES.ok && err !== CODES.noNode) throw refusal(err);
      this.#firstSeen.delete(path);
    }
  }

  async #leftMs(
    session: Session,
    path: string,
    lockDelayMs: number,
    now: LeaderTime | null,
    until: number,
  ): Promise<number> {
    const left = this.#sinceFirstSight(path, lockDelayMs);
    if (left <= 0) return 0;
    const { err, value } = await session.ask(getData(path), until);
    if (err === CODES.noNode) return 0;
    if (value === null) throw refusal(err);
    const { version, mtime: atMs, mzxid: zxid } = value.stat;
    if (version === 0) {
      const { err: code } = await session.ask(setData(path, SEEN, 0), until);
      const others = code === CODES.badVersion || code === CODES.noNode;
      if (code !== CODES.ok && !others) throw refusal(code);
      return left;
    }
    const since = { atMs, zxid };
    // The difference between two leaders' clocks is unknown.
    if (now === null || !isSameClock(since, now)) return left;
    return Math.min(left, Math.max(0, lockDelayMs - elapsedMs(since, now)));
  }

  #sinceFirstSight(path: string, lockDelayMs: number): number {
    const now = systemClock.now();
    const firstSeenAt = this.#firstSeen.get(path) ?? now;
    this.#firstSeen.set(path, firstSeenAt);
    if (this.#firstSeen.size > REMEMBERED) {
      const [oldest] = this.#firstSeen.keys();
      this.#firstSeen.delete(oldest!);
    }
    return lockDelayMs - (now - firstSeenAt);
  }
}
