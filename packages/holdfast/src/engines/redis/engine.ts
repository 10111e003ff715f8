import { sleep, systemClock } from "../../core/runtime/clock.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Failed,
  Gone,
  Granted,
  GrantRef,
  ListFilter,
  ListPage,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  WatchFacet,
} from "../../engine.js";
import type { RedisConnection } from "./clients/connection.js";
import { warnOfEviction } from "./inspect/eviction.js";
import { listPage } from "./inspect/listing.js";
import { viewOf } from "./inspect/views.js";
import { Notifications, reportPushFailure } from "./notifications/notifications.js";
import type { RedisTerms } from "./options.js";
import {
  decodeAcquire,
  decodePushedGrant,
  decodeRelease,
  decodeRevoke,
  decodeUnfinished,
} from "./protocol/decode.js";
import { encodeClaim, encodeRelease, encodeRenewal } from "./protocol/encode.js";
import { keyOf, resourceOf } from "./protocol/keys.js";
import { isYes, unexpectedAnswer } from "./protocol/shape.js";
import { RedisQueue } from "./queue.js";
import { decodeOneRenewal, renewMany } from "./sending/renew-many.js";
import { ResentClaims } from "./sending/resent-claims.js";
import { runEach } from "./sending/run-each.js";
import { closed, ScriptBatcher } from "./sending/script-batcher.js";

const DAY_MS = 86_400_000;
const LEAVING_MS = 500;

export const REDIS_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 20, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "clock",
  tokenRange: 1024,
  leaves: true,
  remote: true,
};

/** The engine for Redis. One script on the server decides every answer, atomically. */
export class RedisEngine implements Engine {
  readonly name = "redis";
  readonly traits = REDIS_TRAITS;
  readonly #connection: RedisConnection;
  readonly #terms: RedisTerms;
  readonly #batcher: ScriptBatcher;
  /**
   * Sends what counts only after WAIT confirmed it. The same object as #batcher when `replicas` is
   * not set.
   */
  readonly #replicated: ScriptBatcher;
  readonly #notifications: Notifications;
  readonly #closeOwned: () => void;
  readonly #resentClaims = new ResentClaims();
  readonly #changeListeners = new Set<(resource: string) => void>();
  readonly queue: RedisQueue;
  #used = false;

  /**
   * closeOwned closes what was opened for this engine alone. A client that a user handed in stays
   * open.
   */
  constructor(connection: RedisConnection, terms: RedisTerms, closeOwned: () => void = () => {}) {
    this.#connection = connection;
    this.#terms = terms;
    this.#closeOwned = closeOwned;
    this.#notifications = new Notifications(connection, terms.prefix, (channel, message) =>
      this.#onMessage(channel, message),
    );
    const { idleMs, replicas, spin } = terms;
    const channelOf = (key: string) => this.#notifications.channelOf(key);
    this.#batcher = new ScriptBatcher(connection, { idleMs, channelOf, wait: null, spin });
    this.#replicated =
      replicas === null
        ? this.#batcher
        : new ScriptBatcher(connection, { idleMs, channelOf, wait: replicas, spin });
    this.queue = new RedisQueue({
      ...{ prefix: terms.prefix, batcher: this.#replicated },
      ...{ notifications: this.#notifications, resentClaims: this.#resentClaims },
      onUse: () => this.#firstUse(),
      leaveTombstone: (ref) => void this.#leaveTombstone(ref),
    });
  }

  /** Subscribes to notifications now, so that the first wait does not have to open a connection. */
  async open(): Promise<void> {
    this.#firstUse();
    await this.#notifications.listen();
  }

  tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    this.#firstUse();
    void this.#notifications.listen();
    const read = (raw: unknown, once: boolean) => {
      const answer = decodeAcquire(raw, claim, call.startedAt);
      if (!once) this.#resentClaims.add(claim.grantId);
      if (!once && answer.kind === "busy") void this.#leaveTombstone(claim);
      return answer;
    };
    const words = encodeClaim("acquire", claim, 0);
    return this.#replicated.run(this.#key(claim.resource), words, { read }, call.timeoutMs);
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone | Failed)[]> {
    if (this.#batcher.isClosed) return Promise.reject(closed());
    // WAIT confirms renewals one by one, and on a Cluster the grants lie in many slots.
    const oneByOne = this.#terms.replicas !== null || this.#connection.shards !== undefined;
    if (grants.length > 1 && !oneByOne) {
      return renewMany(this.#batcher, this.#terms.prefix, grants, call);
    }
    const words = (ref: RenewRef) => encodeRenewal(ref, call.order);
    const read = (answer: unknown, { ttlMs }: RenewRef) =>
      decodeOneRenewal(answer, call.startedAt, ttlMs);
    return runEach(this.#replicated, this.#terms.prefix, grants, call.timeoutMs, words, read);
  }

  release(
    grants: readonly ReleaseRef[],
    { timeoutMs }: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    for (let i = 0; i < grants.length; i++) this.queue.forget(grants[i]!.grantId);
    const { prefix } = this.#terms;
    const words = this.#encodeRelease;
    return runEach(this.#batcher, prefix, grants, timeoutMs, words, this.#readRelease);
  }

  check({ resource, mode, token }: Sequence): Promise<boolean> {
    const words = ["check", mode === "shared" ? "s" : "x", String(token)];
    return this.#batcher.run(this.#key(resource), words, { read: isYes });
  }

  revoke({ resource, token, force }: RevokeRef): Promise<"revoked" | "gone"> {
    const words = ["revoke", String(token), force ? "1" : "0", this.#notifications.changesChannel];
    return this.#batcher.run(this.#key(resource), words, { read: decodeRevoke });
  }

  inspect(resource: string): Promise<ResourceView> {
    const read = (answer: unknown) => viewOf(resource, answer);
    return this.#batcher.run(this.#key(resource), ["inspect"], { read });
  }

  async list(filter: ListFilter): Promise<ListPage> {
    if (this.#batcher.isClosed) throw closed();
    return listPage(this.#connection, this.#terms.prefix, filter, (resource) =>
      this.inspect(resource),
    );
  }

  async close(): Promise<void> {
    if (this.#batcher.isClosed) return;
    await this.#leaveQueues();
    for (const batcher of [this.#batcher, this.#replicated]) batcher.close();
    this.queue.close();
    this.#changeListeners.clear();
    this.#notifications.close();
    this.#connection.close();
    this.#closeOwned();
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#changeListeners.add(listener);
      return () => this.#changeListeners.delete(listener);
    },
  };

  /**
   * Ends our waiters, so that those behind them need not wait until the server takes them for dead.
   * They are released, not withdrawn: a waiter that was just granted the resource would otherwise
   * keep it.
   */
  async #leaveQueues(): Promise<void> {
    const left = Promise.all(this.queue.waiters.map((ref) => this.#endClaim(ref)));
    // A server that does not answer in time drops our waiters later, when their heartbeats stop.
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch(reportPushFailure);
    left.catch(() => {});
  }

  /**
   * Leaves a tombstone for a claim that is over and that nobody releases: late copies of it are
   * refused.
   */
  async #leaveTombstone(ref: GrantRef): Promise<void> {
    try {
      await this.#endClaim(ref);
    } catch (error) {
      if (!this.#batcher.isClosed) reportPushFailure(error);
    }
  }

  #endClaim({ resource, grantId }: GrantRef): Promise<Released | Gone> {
    const words = this.#encodeRelease({ resource, grantId, tombstoneMs: 0 });
    return this.#batcher.run(this.#key(resource), words, { read: this.#readRelease });
  }

  readonly #encodeRelease = (ref: ReleaseRef): string[] => {
    const tombstoneMs = this.#resentClaims.tombstoneMs(ref.grantId);
    return encodeRelease(tombstoneMs > ref.tombstoneMs ? { ...ref, tombstoneMs } : ref);
  };

  /**
   * The answer to a release may carry the grant of another claim. Where the next holder is one of
   * our own waiters, the server tells us by this answer instead of a push, so reading it wakes that
   * waiter.
   */
  readonly #readRelease = (answer: unknown): Released | Gone =>
    decodeRelease(answer, (carriedGrant) => this.queue.onPushedGrant(carriedGrant));

  #onMessage(channel: string, message: string): void {
    if (channel === this.#notifications.changesChannel) {
      const resource = resourceOf(this.#terms.prefix, message)?.resource;
      if (resource !== undefined) for (const listener of this.#changeListeners) listener(resource);
      return;
    }
    const unfinished = decodeUnfinished(message);
    if (unfinished !== null) {
      void this.#continuePromotion(unfinished);
      return;
    }
    const pushed = decodePushedGrant(message);
    if (pushed === null) reportPushFailure(unexpectedAnswer(message));
    else this.queue.onPushedGrant(pushed);
  }

  /**
   * One call promotes a limited number of waiters, so that the server can answer others in between.
   */
  async #continuePromotion(key: string): Promise<void> {
    try {
      await this.#batcher.run(key, ["promote"], { read: isYes });
    } catch (error) {
      // The waiters' heartbeats promote them, too.
      if (!this.#batcher.isClosed) reportPushFailure(error);
    }
  }

  #firstUse(): void {
    if (this.#used || this.#batcher.isClosed) return;
    this.#used = true;
    void warnOfEviction(this.#connection);
  }

  #key(resource: string): string {
    return keyOf(this.#terms.prefix, resource);
  }
}
