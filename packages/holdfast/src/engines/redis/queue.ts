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
  /** Closes a claim that is over, and that nobody releases, to copies of it that come late. */
  leaveTombstone(ref: GrantRef): void;
}

/** Our waiters in the queues of the server: how they come and go, and how they hear of their grants. */
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

  /** It is released, so nothing that is pushed for it counts any more. */
  forget(grantId: string): void {
    this.#sentHeartbeats.forget(grantId);
  }

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
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
    // Known from before the claim is sent: a push may overtake the answer.
    const beat = this.#sentHeartbeats.next(claim, call.startedAt);
    const read = (raw: unknown, once: boolean) => {
      if (!once) resentClaims.add(grantId);
      const answer = decodeEnqueue(raw, claim, call.startedAt);
      if (answer.kind !== "queued") this.#sentHeartbeats.forget(grantId);
      return answer;
    };
    const fail = (error: unknown) => {
      // One that was refused stands in no queue, unless an earlier request of the same claim does.
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
   * Another connection wrote what was pushed; ours can wait for replicas after it wrote itself. A
   * heartbeat does: it gives the grant its whole ttl. A renewal for the claim window would take back
   * what a heartbeat or a renewal before it gave. The number 0 dates no grant.
   */
  async #confirm({ resource, grantId }: GrantRef, since: number): Promise<void> {
    const { batcher, prefix } = this.#terms;
    const read = (raw: unknown) => decodeHeartbeat(raw, since);
    try {
      const key = keyOf(prefix, resource);
      const answer = await batcher.run(key, ["heartbeat", grantId, "0"], { read });
      const waiter = this.#sentHeartbeats.find(grantId);
      // Any other answer is the next heartbeat's to find, and to tell.
      if (answer.kind === "granted" && waiter !== null) this.#notify(waiter, answer);
    } catch (error) {
      reportPushFailure(error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
}
