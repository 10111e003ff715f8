import type {
  Call,
  Claim,
  Failed,
  Gone,
  Granted,
  GrantRef,
  Queued,
  QueueFacet,
  Unknown,
  Withdrawn,
} from "../../engine.js";
import { SentHeartbeats } from "../../engine-kit/sent-heartbeats.js";
import { EngineError, UsageError } from "../../errors.js";
import { type Notifications, reportPushFailure } from "./notifications/notifications.js";
import {
  decodeEnqueue,
  decodeHeartbeat,
  decodeWithdraw,
  type PushedGrant,
} from "./protocol/decode.js";
import { encodeClaim } from "./protocol/encode.js";
import { keyOf } from "./protocol/keys.js";
import type { ResentClaims } from "./sending/resent-claims.js";
import { runEach } from "./sending/run-each.js";
import type { ScriptBatcher } from "./sending/script-batcher.js";

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

export interface QueueTerms {
  readonly prefix: string;
  /** Waits for replicas where `replicas` is set. */
  readonly batcher: ScriptBatcher;
  readonly notifications: Notifications;
  readonly resentClaims: ResentClaims;
  /** Called before every enqueue. */
  onUse(): void;
  /**
   * Leaves a tombstone for a claim that is over and that nobody releases: late copies of it are
   * refused.
   */
  leaveTombstone(ref: GrantRef): void;
}

/**
 * Our waiters in the server's queues: how they join and leave, and how they hear of their grants.
 */
export class RedisQueue implements QueueFacet {
  readonly #terms: QueueTerms;
  readonly #sentHeartbeats = new SentHeartbeats();
  readonly #listeners = new Set<GrantListener>();

  constructor(terms: QueueTerms) {
    this.#terms = terms;
  }

  readonly enqueue = (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
    const { notifications, prefix } = this.#terms;
    this.#terms.onUse();
    const key = keyOf(prefix, claim.resource);
    if (notifications.isSubscribed) return this.#enqueue(key, claim, call);
    return notifications.listenFor(key).then(() => this.#enqueue(key, claim, call));
  };

  readonly heartbeat = (
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
    const { batcher, prefix, notifications } = this.#terms;
    const words = (waiter: GrantRef) => {
      void notifications.listenFor(keyOf(prefix, waiter.resource));
      return [
        "heartbeat",
        waiter.grantId,
        String(this.#sentHeartbeats.next(waiter, call.startedAt)),
      ];
    };
    const read = (raw: unknown, { grantId }: GrantRef) => {
      const answer = decodeHeartbeat(raw, call.startedAt);
      if (answer.kind !== "queued") this.#sentHeartbeats.forget(grantId);
      return answer;
    };
    return runEach(batcher, prefix, waiters, call.timeoutMs, words, read);
  };

  readonly withdraw = (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
    const { resource, grantId } = ref;
    const { batcher, prefix, resentClaims } = this.#terms;
    const read = (raw: unknown) => {
      const answer = decodeWithdraw(raw, call.startedAt);
      this.#sentHeartbeats.forget(grantId);
      const isDoubtful = resentClaims.tombstoneMs(grantId) > 0;
      if (answer.kind === "withdrawn" && isDoubtful)
        this.#terms.leaveTombstone({ resource, grantId });
      return answer;
    };
    const words = ["withdraw", grantId];
    return batcher.run(keyOf(prefix, resource), words, { read }, call.timeoutMs);
  };

  readonly onGrant = (listener: GrantListener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get waiters(): readonly GrantRef[] {
    return this.#sentHeartbeats.waiters;
  }

  /** The claim is released, so a push for it no longer counts. */
  forget(grantId: string): void {
    this.#sentHeartbeats.forget(grantId);
  }

  /**
   * A pushed grant was made after the heartbeat that the message names. So its validity counts from
   * when that heartbeat was sent, however late the message arrives.
   */
  onPushedGrant({ grantId, beat, token, tokens, ttlMs }: PushedGrant): void {
    const waiter = this.#sentHeartbeats.at(grantId, beat);
    if (waiter === null) return;
    const { ref, since } = waiter;
    if (this.#terms.batcher.confirms) void this.#confirm(ref, since);
    else this.#notify(ref, { kind: "granted", token, tokens, since, ttlMs });
  }

  close(): void {
    this.#listeners.clear();
  }

  #enqueue(key: string, claim: Claim, call: Call): Promise<Granted | Queued | Gone> {
    const { batcher, resentClaims } = this.#terms;
    const { grantId } = claim;
    const isNew = this.#sentHeartbeats.find(grantId) === null;
    // Registered before the claim is sent, because a push may overtake the answer.
    const beat = this.#sentHeartbeats.next(claim, call.startedAt);
    const read = (raw: unknown, once: boolean) => {
      if (!once) resentClaims.add(grantId);
      const answer = decodeEnqueue(raw, claim, call.startedAt);
      if (answer.kind !== "queued") this.#sentHeartbeats.forget(grantId);
      return answer;
    };
    const fail = (error: unknown) => {
      // A refused claim is in no queue, unless an earlier request of the same claim is.
      if (isNew && isRefusal(error)) this.#sentHeartbeats.forget(grantId);
      throw error;
    };
    return batcher.run(key, encodeClaim("enqueue", claim, beat), { read, fail }, call.timeoutMs);
  }

  #notify(waiter: GrantRef, granted: Granted): void {
    this.#sentHeartbeats.forget(waiter.grantId);
    for (const listener of this.#listeners) listener(waiter, granted);
  }

  /**
   * Another connection wrote the pushed grant, and WAIT covers only what its own connection wrote.
   * So we write by a heartbeat, which gives the grant its whole ttl. A renewal for the claim window
   * could shorten what an earlier heartbeat or renewal gave. Heartbeat number 0 never dates a
   * grant.
   */
  async #confirm({ resource, grantId }: GrantRef, since: number): Promise<void> {
    const { batcher, prefix } = this.#terms;
    const read = (raw: unknown) => decodeHeartbeat(raw, since);
    try {
      const key = keyOf(prefix, resource);
      const answer = await batcher.run(key, ["heartbeat", grantId, "0"], { read });
      const waiter = this.#sentHeartbeats.find(grantId);
      // The next heartbeat finds and reports any other answer.
      if (answer.kind === "granted" && waiter !== null) this.#notify(waiter, answer);
    } catch (error) {
      reportPushFailure(error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
}
