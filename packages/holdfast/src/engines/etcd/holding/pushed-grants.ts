import { systemClock } from "../../../core/runtime/clock.js";
import type { Gone, Granted, GrantRef } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { CallTimes } from "../client/deadlines.js";
import type { Leases } from "../leases/leases.js";
import type { Watches } from "../notifications/watches.js";
import { readRecord } from "../queue/key-record.js";
import type { Keys } from "../queue/keys.js";
import { isSame, type Predecessor } from "../queue/queue.js";
import type { Holds, QueueAnswer } from "../queue/queue-answer.js";
import { HEAD_SIZE } from "../queue/queue-reader.js";
import type { QueueTurns } from "../queue/queue-turns.js";
import type { TrackedClaims, WaitingClaim } from "./tracked-claims.js";

const LOOK_MS = 5_000;
/**
 * A waiter becomes a holder on its waiter lease until this part has passed; a renewal moves it
 * later.
 */
const FRESH = 0.4;

type GrantListener = (waiter: GrantRef, granted: Granted) => void;
type RecordGrant = (ref: GrantRef, holds: Holds, times: CallTimes) => Promise<Granted | Gone>;

interface Tools {
  readonly keys: Keys;
  readonly leases: Leases;
  readonly turns: QueueTurns;
  readonly trackedClaims: TrackedClaims;
  readonly watches: Watches;
}

/** Grants waiters between their heartbeats, as soon as the keys before them end. */
export class PushedGrants {
  readonly #tools: Tools;
  readonly #recordGrant: RecordGrant;
  readonly #listeners = new Set<GrantListener>();
  /** By key, our waiters that wait for its end. */
  readonly #behind = new Map<string, Set<WaitingClaim>>();
  #closed = false;

  constructor(tools: Tools, recordGrant: RecordGrant) {
    this.#tools = tools;
    this.#recordGrant = recordGrant;
  }

  onGrant(listener: GrantListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Watches the keys before a waiter. */
  follow(waiting: WaitingClaim, before: readonly Predecessor[]): void {
    const same =
      before.length === waiting.interests.length &&
      waiting.interests.every((interest) => before.some((ahead) => isSame(ahead, interest)));
    if (same) return;
    this.unfollow(waiting);
    const { keys, watches } = this.#tools;
    const keyRange = keys.rangeOf(waiting.ref.resource);
    waiting.interests = before.map((ahead) => ({
      ...{ keyRange, key: ahead.key, created: ahead.created },
      onEnd: () => void this.#look(waiting, ahead),
    }));
    for (const interest of waiting.interests) {
      watches.add(interest);
      const behind = this.#behind.get(interest.key) ?? new Set();
      this.#behind.set(interest.key, behind.add(waiting));
    }
  }

  unfollow(waiting: WaitingClaim): void {
    for (const interest of waiting.interests) {
      this.#tools.watches.drop(interest);
      const behind = this.#behind.get(interest.key);
      behind?.delete(waiting);
      if (behind?.size === 0) this.#behind.delete(interest.key);
    }
    waiting.interests = [];
  }

  /** A claim of ours was let in: shared waiters far behind it, which wait for it, may be next. */
  wakeBehind({ key }: Predecessor): void {
    for (const waiting of this.#behind.get(key) ?? []) {
      const isFar = waiting.position >= HEAD_SIZE && readRecord(waiting.self)?.mode === "shared";
      if (isFar) setImmediate(() => void this.#look(waiting, null));
    }
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    this.#tools.watches.close();
  }

  /**
   * A member before this waiter has ended, or was let in if `ended` is null. If anything fails
   * here, the next heartbeat corrects it.
   */
  async #look(waiting: WaitingClaim, ended: Predecessor | null): Promise<void> {
    const { turns, trackedClaims } = this.#tools;
    const { ref, self, offsetMs, lastBefore } = waiting;
    const isStill = () => !this.#closed && trackedClaims.waiter(ref) === waiting;
    if (!isStill()) return;
    this.unfollow(waiting);
    const at = systemClock.now();
    const times = { at, deadline: at + LOOK_MS, startedAt: at + offsetMs };
    try {
      const isLast = lastBefore !== null && ended !== null && isSame(lastBefore, ended);
      const isAll = isLast && !waiting.deletionSent && this.#isFresh(self.lease, at);
      const record = readRecord(self)!;
      const answer: QueueAnswer = isAll
        ? { kind: "holds", self, record, marker: null }
        : await turns.take(ref.resource, self, times.deadline);
      if (!isStill()) return;
      if (answer.kind === "waits") {
        this.follow(waiting, answer.before ?? []);
        waiting.holders = answer.holders;
        waiting.readAt = systemClock.now();
        waiting.position = answer.position ?? waiting.position;
        waiting.lastBefore = answer.lastBefore;
      } else if (answer.kind === "holds") {
        const granted = await this.#recordGrant(ref, answer, times);
        if (granted.kind !== "granted") return;
        for (const listener of this.#listeners) listener(ref, granted);
      }
    } catch (error) {
      emit("failed", () => ({ during: "push", error, resource: ref.resource }));
    }
  }

  /** Whether a grant on this lease would last long enough to be renewed. */
  #isFresh(id: string, at: number): boolean {
    const lease = this.#tools.leases.find(id);
    return lease !== null && at - lease.since <= lease.ttlMs * FRESH;
  }
}
