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
import { type Pushes, tellPushFailed } from "./notifications/notifications.js";
import { beaten, enqueued, type Pushed, withdrawn } from "./protocol/decode.js";
import { claimWords } from "./protocol/encode.js";
import { keyOf } from "./protocol/keys.js";
import type { Doubts } from "./sending/doubts.js";
import { runEach } from "./sending/run-each.js";
import type { ScriptBatcher } from "./sending/script-batcher.js";

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

export interface QueueTerms {
  readonly prefix: string;
  /** Waits for replicas where `replicas` is set. */
  readonly batcher: ScriptBatcher;
  readonly pushes: Pushes;
  readonly doubts: Doubts;
  /** Called before every enqueue. */
  onUse(): void;
  /** Closes a claim that is over, and that nobody releases, to copies of it that come late. */
  bury(ref: GrantRef): void;
}

/** Our waiters in the queues of the server: how they come and go, and how they hear of their grants. */
export class RedisQueue implements QueueFacet {
  readonly #terms: QueueTerms;
  readonly #beats = new SentHeartbeats();
  readonly #listeners = new Set<GrantListener>();

  constructor(terms: QueueTerms) {
    this.#terms = terms;
  }

  readonly enqueue = (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
    const { pushes, prefix } = this.#terms;
    this.#terms.onUse();
    const key = keyOf(prefix, claim.resource);
    if (pushes.heard) return this.#enqueue(key, claim, call);
    return pushes.listenFor(key).then(() => this.#enqueue(key, claim, call));
  };

  readonly heartbeat = (
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
    const { batcher, prefix, pushes } = this.#terms;
    const words = (waiter: GrantRef) => {
      void pushes.listenFor(keyOf(prefix, waiter.resource));
      return ["heartbeat", waiter.grantId, String(this.#beats.next(waiter, call.startedAt))];
    };
    const read = (raw: unknown, { grantId }: GrantRef) => {
      const answer = beaten(raw, call.startedAt);
      if (answer.kind !== "queued") this.#beats.forget(grantId);
      return answer;
    };
    return runEach(batcher, prefix, waiters, call.timeoutMs, words, read);
  };

  readonly withdraw = (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
    const { resource, grantId } = ref;
    const { batcher, prefix, doubts } = this.#terms;
    const read = (raw: unknown) => {
      const answer = withdrawn(raw, call.startedAt);
      this.#beats.forget(grantId);
      const isDoubtful = doubts.tombstoneMs(grantId) > 0;
      if (answer.kind === "withdrawn" && isDoubtful) this.#terms.bury({ resource, grantId });
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
    return this.#beats.waiters;
  }

  /** It is released, so nothing that is pushed for it counts any more. */
  forget(grantId: string): void {
    this.#beats.forget(grantId);
  }

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
   */
  hearGrant({ grantId, beat, token, tokens, ttlMs }: Pushed): void {
    const waiter = this.#beats.at(grantId, beat);
    if (waiter === null) return;
    const { ref, since } = waiter;
    if (this.#terms.batcher.confirms) void this.#confirm(ref, since);
    else this.#tell(ref, { kind: "granted", token, tokens, since, ttlMs });
  }

  close(): void {
    this.#listeners.clear();
  }

  #enqueue(key: string, claim: Claim, call: Call): Promise<Granted | Queued | Gone> {
    const { batcher, doubts } = this.#terms;
    const { grantId } = claim;
    const isNew = this.#beats.find(grantId) === null;
    // Known from before the claim is sent: a push may overtake the answer.
    const beat = this.#beats.next(claim, call.startedAt);
    const read = (raw: unknown, once: boolean) => {
      if (!once) doubts.add(grantId);
      const answer = enqueued(raw, claim, call.startedAt);
      if (answer.kind !== "queued") this.#beats.forget(grantId);
      return answer;
    };
    const fail = (error: unknown) => {
      // One that was refused stands in no queue, unless an earlier request of the same claim does.
      if (isNew && isRefusal(error)) this.#beats.forget(grantId);
      throw error;
    };
    return batcher.run(key, claimWords("enqueue", claim, beat), { read, fail }, call.timeoutMs);
  }

  #tell(waiter: GrantRef, granted: Granted): void {
    this.#beats.forget(waiter.grantId);
    for (const listener of this.#listeners) listener(waiter, granted);
  }

  /**
   * Another connection wrote what was pushed; ours can wait for replicas after it wrote itself. A
   * heartbeat does: it gives the grant its whole ttl. A renewal for the claim window would take back
   * what a heartbeat or a renewal before it gave. The number 0 dates no grant.
   */
  async #confirm({ resource, grantId }: GrantRef, since: number): Promise<void> {
    const { batcher, prefix } = this.#terms;
    const read = (raw: unknown) => beaten(raw, since);
    try {
      const key = keyOf(prefix, resource);
      const answer = await batcher.run(key, ["heartbeat", grantId, "0"], { read });
      const waiter = this.#beats.find(grantId);
      // Any other answer is the next heartbeat's to find, and to tell.
      if (answer.kind === "granted" && waiter !== null) this.#tell(waiter, answer);
    } catch (error) {
      tellPushFailed(error);
    }
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
}
