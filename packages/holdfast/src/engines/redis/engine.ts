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
  Queued,
  QueueFacet,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  Unknown,
  WatchFacet,
  Withdrawn,
} from "../../engine.js";
import { SentHeartbeats as Beats } from "../../engine-kit/sent-heartbeats.js";
import { EngineError } from "../../errors.js";
import { emit } from "../../events.js";
import type { Seam } from "./clients/connection.js";
import { warnOfEviction } from "./inspect/eviction.js";
import { listPage } from "./inspect/listing.js";
import { viewOf } from "./inspect/views.js";
import { Pushes } from "./notifications/notifications.js";
import type { RedisTerms } from "./options.js";
import { clientError } from "./protocol/client-error.js";
import {
  beaten,
  type Pushed,
  pushedIn,
  released,
  revoked,
  tried,
  unfinishedIn,
  withdrawn,
} from "./protocol/decode.js";
import { claimWords, releaseWords, renewWords } from "./protocol/encode.js";
import { keyOf, resourceOf } from "./protocol/keys.js";
import { renewal, renewTogether } from "./protocol/renewal-answers.js";
import { isYes, misfit } from "./protocol/shape.js";
import { Doubts } from "./sending/doubts.js";
import { EnqueueReader, OnlyReader, readOne } from "./sending/readers.js";
import { ScriptBatcher } from "./sending/script-batcher.js";

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

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** One Redis. Every answer is decided by one script, atomically, on the server. */
export class RedisEngine implements Engine {
  readonly name = "redis";
  readonly traits = REDIS_TRAITS;
  readonly #seam: Seam;
  readonly #terms: RedisTerms;
  readonly #batcher: ScriptBatcher;
  /** Sends what counts only after WAIT confirmed it. The same object as #batcher where `replicas` is not set. */
  readonly #replicated: ScriptBatcher;
  readonly #pushes: Pushes;
  readonly #end: () => void;
  readonly #beats = new Beats();
  readonly #doubts = new Doubts();
  readonly #grantListeners = new Set<GrantListener>();
  readonly #changeListeners = new Set<(resource: string) => void>();
  #used = false;
  #closed = false;

  /** end closes what was opened for this engine alone; a client that was handed in stays open. */
  constructor(seam: Seam, terms: RedisTerms, end: () => void = () => {}) {
    this.#seam = seam;
    this.#terms = terms;
    this.#end = end;
    this.#pushes = new Pushes(seam, terms.prefix, (channel, message) =>
      this.#hear(channel, message),
    );
    const { idleMs, replicas, spin } = terms;
    const channelOf = (key: string) => this.#pushes.channelOf(key);
    this.#batcher = new ScriptBatcher(seam, { idleMs, channelOf, wait: null, spin });
    this.#replicated =
      replicas === null
        ? this.#batcher
        : new ScriptBatcher(seam, { idleMs, channelOf, wait: replicas, spin });
  }

  /** Hears pushes from now on, so that the first wait need not begin with a new connection. */
  async open(): Promise<void> {
    this.#firstUse();
    await this.#pushes.listen();
  }

  tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    this.#firstUse();
    void this.#pushes.listen();
    if (this.#closed) return Promise.reject(closed());
    const read = (raw: unknown, once: boolean) => {
      const answer = tried(raw, claim, call.startedAt);
      if (!once) this.#doubt(claim, answer.kind === "busy");
      return answer;
    };
    const key = keyOf(this.#terms.prefix, claim.resource);
    const words = claimWords("acquire", claim, 0);
    return this.#replicated.run(key, words, { read, fail }, this.#until(call));
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone | Failed)[]> {
    if (this.#closed) return Promise.reject(closed());
    // What replicas must have is confirmed one by one, and what is on a Cluster is in as many slots.
    const scattered = this.#terms.replicas !== null || this.#seam.shards !== undefined;
    if (grants.length > 1 && !scattered) {
      return renewTogether(this.#batcher, this.#terms.prefix, grants, call);
    }
    const ask = (ref: RenewRef) => renewWords(ref, call.order);
    return this.#each(this.#replicated, grants, call, ask, (answer, { ttlMs }) =>
      renewal(answer, call.startedAt, ttlMs),
    );
  }

  release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    for (let i = 0; i < grants.length; i++) this.#beats.forget(grants[i]!.grantId);
    return this.#each(this.#batcher, grants, call, this.#releaseWords, this.#readRelease);
  }

  check({ resource, mode, token }: Sequence): Promise<boolean> {
    const words = ["check", mode === "shared" ? "s" : "x", String(token)];
    return this.#ask(this.#batcher, resource, words, isYes);
  }

  revoke({ resource, token, force }: RevokeRef): Promise<"revoked" | "gone"> {
    const words = ["revoke", String(token), force ? "1" : "0", this.#pushes.changes];
    return this.#ask(this.#batcher, resource, words, revoked);
  }

  inspect(resource: string): Promise<ResourceView> {
    const read = (answer: unknown) => viewOf(resource, answer);
    return this.#ask(this.#batcher, resource, ["inspect"], read);
  }

  async list(filter: ListFilter): Promise<ListPage> {
    this.#refuseWhenClosed();
    return listPage(this.#seam, this.#terms.prefix, filter, (resource) => this.inspect(resource));
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#leaveLines();
    this.#closed = true;
    this.#grantListeners.clear();
    this.#changeListeners.clear();
    this.#pushes.close();
    this.#seam.close();
    this.#end();
  }

  readonly queue: QueueFacet = {
    enqueue: (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      this.#firstUse();
      if (this.#pushes.heard) return this.#enqueue(claim, call);
      const key = keyOf(this.#terms.prefix, claim.resource);
      return this.#pushes.listenFor(key).then(() => this.#enqueue(claim, call));
    },

    heartbeat: (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> =>
      this.#each(
        this.#replicated,
        waiters,
        call,
        (waiter) => {
          void this.#pushes.listenFor(keyOf(this.#terms.prefix, waiter.resource));
          return ["heartbeat", waiter.grantId, String(this.#beats.next(waiter, call.startedAt))];
        },
        (raw, { grantId }) => {
          const answer = beaten(raw, call.startedAt);
          if (answer.kind !== "queued") this.#beats.forget(grantId);
          return answer;
        },
      ),

    withdraw: ({ resource, grantId }: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const read = (raw: unknown) => {
        const answer = withdrawn(raw, call.startedAt);
        this.#beats.forget(grantId);
        const isDoubtful = this.#doubts.tombstoneMs(grantId) > 0;
        if (answer.kind === "withdrawn" && isDoubtful) void this.#bury({ resource, grantId });
        return answer;
      };
      return this.#ask(this.#replicated, resource, ["withdraw", grantId], read, this.#until(call));
    },

    onGrant: (listener: GrantListener) => {
      this.#grantListeners.add(listener);
      return () => this.#grantListeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#changeListeners.add(listener);
      return () => this.#changeListeners.delete(listener);
    },
  };

  /**
   * Whoever comes after our waiters should not have to find out that nobody is there. Released, not
   * withdrawn: one that was granted the resource meanwhile would keep it.
   */
  async #leaveLines(): Promise<void> {
    const left = Promise.all(
      this.#beats.waiters.map(({ resource, grantId }) =>
        this.#ask(
          this.#batcher,
          resource,
          this.#releaseWords({ resource, grantId, tombstoneMs: 0 }),
          this.#readRelease,
        ),
      ),
    );
    // A server that does not answer finds out by itself, when our heartbeats stay away.
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) => this.#failed(error));
    left.catch(() => {});
  }

  #enqueue(claim: Claim, call: Call): Promise<Granted | Queued | Gone> {
    if (this.#closed) return Promise.reject(closed());
    const isNew = this.#beats.find(claim.grantId) === null;
    const beat = this.#beats.next(claim, call.startedAt);
    const doubt = () => this.#doubt(claim, false);
    const reader = new EnqueueReader(this.#beats, claim, call.startedAt, isNew, doubt);
    const key = keyOf(this.#terms.prefix, claim.resource);
    return this.#replicated.run(key, claimWords("enqueue", claim, beat), reader, this.#until(call));
  }

  async #ask<T>(
    batcher: ScriptBatcher,
    resource: string,
    words: readonly string[],
    read: (answer: unknown) => T,
    until = Infinity,
  ): Promise<T> {
    this.#refuseWhenClosed();
    return batcher.run(keyOf(this.#terms.prefix, resource), words, { read, fail }, until);
  }

  /** Where calls wait for their turn, one that nobody waits for any more is not sent. */
  #until({ timeoutMs }: Call): number {
    return this.#terms.replicas === null ? Infinity : systemClock.now() + timeoutMs;
  }

  /** The client may have sent this claim twice, and its first copy may arrive whenever it likes. */
  #doubt(claim: Claim, isOver: boolean): void {
    this.#doubts.add(claim.grantId);
    if (isOver) void this.#bury(claim);
  }

  /** Closes a claim that is over, and that nobody releases, to copies of it that come late. */
  async #bury({ resource, grantId }: GrantRef): Promise<void> {
    try {
      const words = this.#releaseWords({ resource, grantId, tombstoneMs: 0 });
      await this.#ask(this.#batcher, resource, words, this.#readRelease);
    } catch (error) {
      if (!this.#closed) this.#failed(error);
    }
  }

  readonly #releaseWords = (ref: ReleaseRef): string[] => {
    const tombstoneMs = this.#doubts.tombstoneMs(ref.grantId);
    return releaseWords(tombstoneMs > ref.tombstoneMs ? { ...ref, tombstoneMs } : ref);
  };

  /**
   * The answer to a release may carry the grant of another claim: where the next holder is a waiter of
   * ours, the server tells us by this answer instead of a push. So reading it wakes that waiter.
   */
  readonly #readRelease = (answer: unknown): Released | Gone =>
    released(answer, (carriedGrant) => this.#hearGrant(carriedGrant));

  /** An answer for each; one that fails is an answer too, and does not decide for the others. */
  #each<R extends GrantRef, A>(
    batcher: ScriptBatcher,
    refs: readonly R[],
    call: Call,
    ask: (ref: R) => string[],
    read: (answer: unknown, ref: R) => A,
  ): Promise<readonly (A | Failed)[]> {
    if (this.#closed) return Promise.reject(closed());
    const { prefix } = this.#terms;
    const until = this.#until(call);
    if (refs.length === 1) {
      const first = refs[0]!;
      const reader = new OnlyReader(first, read);
      return batcher.run(keyOf(prefix, first.resource), ask(first), reader, until);
    }
    return batcher
      .runAll(
        refs,
        (ref) => ({ key: keyOf(prefix, ref.resource), words: ask(ref) }),
        // On a Cluster a shard that hangs must leave the core time to hear what the others said.
        this.#seam.shards === undefined ? Infinity : call.timeoutMs / 2,
        until,
      )
      .then((answers) => answers.map((answer, i) => readOne(answer, refs[i]!, read)));
  }

  #hear(channel: string, message: string): void {
    if (channel === this.#pushes.changes) {
      const resource = resourceOf(this.#terms.prefix, message)?.resource;
      if (resource !== undefined) for (const listener of this.#changeListeners) listener(resource);
      return;
    }
    const unfinished = unfinishedIn(message);
    if (unfinished !== null) {
      void this.#goOn(unfinished);
      return;
    }
    const pushed = pushedIn(message);
    if (pushed === null) this.#failed(misfit(message));
    else this.#hearGrant(pushed);
  }

  /** One call lets in only so many waiters, so that other programs get their answers in between. */
  async #goOn(key: string): Promise<void> {
    try {
      await this.#batcher.run(key, ["promote"], { read: isYes, fail });
    } catch (error) {
      // Heartbeats of those in line do the same.
      if (!this.#closed) this.#failed(error);
    }
  }

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
   */
  #hearGrant({ grantId, beat, token, tokens, ttlMs }: Pushed): void {
    const waiter = this.#beats.at(grantId, beat);
    if (waiter === null) return;
    const { ref, since } = waiter;
    if (this.#terms.replicas === null) {
      this.#tell(ref, { kind: "granted", token, tokens, since, ttlMs });
    } else void this.#confirm(ref, since);
  }

  #tell(waiter: GrantRef, answer: Granted): void {
    this.#beats.forget(waiter.grantId);
    for (const listener of this.#grantListeners) listener(waiter, answer);
  }

  /**
   * Another connection wrote what was pushed; ours can wait for replicas after it wrote itself. A
   * heartbeat does: it gives the grant its whole ttl. A renewal for the claim window would take back
   * what a heartbeat or a renewal before it gave. The number 0 dates no grant.
   */
  async #confirm({ resource, grantId }: GrantRef, since: number): Promise<void> {
    try {
      const read = (raw: unknown) => beaten(raw, since);
      const answer = await this.#ask(this.#replicated, resource, ["heartbeat", grantId, "0"], read);
      const waiter = this.#beats.find(grantId);
      // Any other answer is the next heartbeat's to find, and to tell.
      if (answer.kind === "granted" && waiter !== null) this.#tell(waiter, answer);
    } catch (error) {
      this.#failed(error);
    }
  }

  #firstUse(): void {
    if (this.#used || this.#closed) return;
    this.#used = true;
    void warnOfEviction(this.#seam);
  }

  #failed(error: unknown): void {
    emit("failed", () => ({ during: "push", error: clientError(error) }));
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw closed();
  }
}

function closed(): EngineError {
  return new EngineError("the redis engine was closed", { effect: "none", retryable: false });
}

function fail(error: unknown): never {
  throw error;
}
