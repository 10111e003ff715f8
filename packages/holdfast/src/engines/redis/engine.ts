import { sleep, systemClock } from "../../clock.js";
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
import { EngineError, HoldfastError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import { acquired, gone, granted, isDone, queued, viewOf, word } from "./answers.js";
import { Beats } from "./beats.js";
import type { Seam } from "./client.js";
import { Commander, type Reader } from "./commander.js";
import { warnOfEviction } from "./eviction.js";
import { failed } from "./failure.js";
import { keyOf, resourceOf } from "./keys.js";
import { listPage } from "./listing.js";
import type { RedisTerms } from "./options.js";
import { Pushes } from "./pushes.js";
import { renewal, renewTogether } from "./renewals.js";
import { claimWords, releaseWords, renewWords } from "./words.js";

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
  remote: true,
};

const RELEASED: Released = { kind: "released" };

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** One Redis. Every answer is decided by one script, atomically, on the server. */
export class RedisEngine implements Engine {
  readonly name = "redis";
  readonly traits = REDIS_TRAITS;
  readonly #seam: Seam;
  readonly #terms: RedisTerms;
  readonly #commander: Commander;
  /** For what is worth something only when replicas have it; the same one where none need to. */
  readonly #keeping: Commander;
  readonly #pushes: Pushes;
  readonly #end: () => void;
  readonly #beats = new Beats();
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
    const { idleMs, replicas } = terms;
    const channelOf = (key: string) => this.#pushes.channelOf(key);
    this.#commander = new Commander(seam, { idleMs, channelOf, wait: null });
    this.#keeping =
      replicas === null
        ? this.#commander
        : new Commander(seam, { idleMs, channelOf, wait: replicas });
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
    const read = (raw: unknown) => {
      const answer = acquired(raw, claim, call.startedAt);
      if (answer.kind !== "queued") return answer;
      throw misfit("the script queued a claim without a channel");
    };
    const key = keyOf(this.#terms.prefix, claim.resource);
    return this.#keeping.run(key, claimWords("acquire", claim), { read, fail });
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone | Failed)[]> {
    if (this.#closed) return Promise.reject(closed());
    // What replicas must have is confirmed one by one, and what is on a Cluster is in as many slots.
    const scattered = this.#terms.replicas !== null || this.#seam.shards !== undefined;
    if (grants.length > 1 && !scattered) {
      return renewTogether(this.#commander, this.#terms.prefix, grants, call.startedAt);
    }
    return this.#each(this.#keeping, grants, call, renewWords, (answer, { ttlMs }) =>
      renewal(answer, call.startedAt, ttlMs),
    );
  }

  release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    for (let i = 0; i < grants.length; i++) this.#beats.forget(grants[i]!.grantId);
    return this.#each(this.#commander, grants, call, releaseWords, this.#readRelease);
  }

  async check({ resource, mode, token }: Sequence): Promise<boolean> {
    const letter = mode === "shared" ? "s" : "x";
    return Number(await this.#run(resource, "check", letter, String(token))) === 1;
  }

  async revoke({ resource, token, force }: RevokeRef): Promise<"revoked" | "gone"> {
    const { changes } = this.#pushes;
    const answer = await this.#run(resource, "revoke", String(token), force ? 1 : 0, changes);
    return word(answer) === "revoked" ? "revoked" : "gone";
  }

  async inspect(resource: string): Promise<ResourceView> {
    return viewOf(resource, await this.#run(resource, "inspect"));
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
        this.#keeping,
        waiters,
        call,
        (waiter) => {
          void this.#pushes.listenFor(keyOf(this.#terms.prefix, waiter.resource));
          return ["heartbeat", waiter.grantId, String(this.#beats.next(waiter, call.startedAt))];
        },
        (answer, { grantId }) => {
          if (word(answer) === "queued") return queued(answer);
          this.#beats.forget(grantId);
          return word(answer) === "granted" ? granted(answer, call.startedAt) : { kind: "unknown" };
        },
      ),

    withdraw: async ({ resource, grantId }: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const answer = await this.#keep(resource, "withdraw", grantId);
      this.#beats.forget(grantId);
      if (word(answer) === "granted") return granted(answer, call.startedAt);
      return { kind: "withdrawn" };
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
        this.#run(resource, "release", grantId, 0),
      ),
    );
    // A server that does not answer finds out by itself, when our heartbeats stay away.
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) => this.#failed(error));
    left.catch(() => {});
  }

  #enqueue(claim: Claim, call: Call): Promise<Granted | Queued | Gone> {
    if (this.#closed) return Promise.reject(closed());
    const reader = new EnqueueReader(this.#beats, claim, call.startedAt);
    const key = keyOf(this.#terms.prefix, claim.resource);
    return this.#keeping.run(key, claimWords("enqueue", claim), reader);
  }

  async #run(resource: string, ...words: (string | number)[]): Promise<unknown> {
    this.#refuseWhenClosed();
    return this.#commander.run(keyOf(this.#terms.prefix, resource), words.map(String), AS_IT_IS);
  }

  /** For what may answer with a grant. */
  async #keep(resource: string, ...words: (string | number)[]): Promise<unknown> {
    this.#refuseWhenClosed();
    return this.#keeping.run(keyOf(this.#terms.prefix, resource), words.map(String), AS_IT_IS);
  }

  readonly #readRelease = (answer: unknown): Released | Gone => {
    // What would have been pushed to ourselves.
    if (typeof answer === "string") this.#hearGrant(answer);
    return isDone(answer) ? RELEASED : gone(answer);
  };

  /** An answer for each; one that fails is an answer too, and does not decide for the others. */
  #each<R extends GrantRef, A>(
    commander: Commander,
    refs: readonly R[],
    { timeoutMs }: Call,
    ask: (ref: R) => string[],
    read: (answer: unknown, ref: R) => A,
  ): Promise<readonly (A | Failed)[]> {
    if (this.#closed) return Promise.reject(closed());
    const { prefix } = this.#terms;
    if (refs.length === 1) {
      const first = refs[0]!;
      return commander.run(keyOf(prefix, first.resource), ask(first), new OnlyReader(first, read));
    }
    return commander
      .runAll(
        refs,
        (ref) => ({ key: keyOf(prefix, ref.resource), words: ask(ref) }),
        // On a Cluster a shard that hangs must leave the core time to hear what the others said.
        this.#seam.shards === undefined ? Infinity : timeoutMs / 2,
      )
      .then((answers) =>
        answers.map((answer, i) =>
          answer instanceof HoldfastError ? failed(answer) : read(answer, refs[i]!),
        ),
      );
  }

  #hear(channel: string, message: string): void {
    if (channel === this.#pushes.changes) {
      const resource = resourceOf(this.#terms.prefix, message)?.resource;
      if (resource !== undefined) for (const listener of this.#changeListeners) listener(resource);
      return;
    }
    this.#hearGrant(message);
  }

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
   */
  #hearGrant(message: string): void {
    const words = message.split(" ");
    const waiter = this.#beats.at(words[0]!, Number(words[1]));
    if (waiter === null) return;
    const answer: Granted = {
      kind: "granted",
      token: BigInt(words[2]!),
      tokens: Number(words[3]),
      since: waiter.since,
      ttlMs: Number(words[4]),
    };
    if (this.#terms.replicas === null) this.#tell(waiter.ref, answer);
    else void this.#confirm(waiter.ref, answer);
  }

  #tell(waiter: GrantRef, answer: Granted): void {
    this.#beats.forget(waiter.grantId);
    for (const listener of this.#grantListeners) listener(waiter, answer);
  }

  /** Another connection wrote what was pushed; ours can wait for replicas after it wrote itself. */
  async #confirm(waiter: GrantRef, answer: Granted): Promise<void> {
    try {
      const { resource, grantId } = waiter;
      const renewed = await this.#keep(resource, "renew", grantId, answer.ttlMs);
      // The next heartbeat finds the grant, and tells by its own answer.
      if (isDone(renewed) && this.#beats.find(grantId) !== null) {
        this.#tell(waiter, answer);
      }
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
    emit("failed", () => ({ during: "push", error }));
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

const AS_IT_IS: Reader<unknown> = { read: (answer) => answer, fail };

/** Tells of the only one of a batch. */
class OnlyReader<R, A> implements Reader<readonly (A | Failed)[]> {
  readonly #ref: R;
  readonly #read: (answer: unknown, ref: R) => A;

  constructor(ref: R, read: (answer: unknown, ref: R) => A) {
    this.#ref = ref;
    this.#read = read;
  }

  read(answer: unknown): readonly (A | Failed)[] {
    return [this.#read(answer, this.#ref)];
  }

  fail(error: unknown): readonly (A | Failed)[] {
    return [failed(error)];
  }
}

/** Whoever stands in line is known to the beats from before the claim is sent. */
class EnqueueReader implements Reader<Granted | Queued | Gone> {
  readonly #beats: Beats;
  readonly #claim: Claim;
  readonly #startedAt: number;
  readonly #isNew: boolean;

  constructor(beats: Beats, claim: Claim, startedAt: number) {
    this.#beats = beats;
    this.#claim = claim;
    this.#startedAt = startedAt;
    this.#isNew = beats.start(claim, startedAt);
  }

  read(raw: unknown): Granted | Queued | Gone {
    const answer = acquired(raw, this.#claim, this.#startedAt);
    if (answer.kind !== "queued") this.#beats.forget(this.#claim.grantId);
    if (answer.kind !== "busy") return answer;
    throw misfit("the script answered busy to a claim with a channel");
  }

  fail(error: unknown): never {
    // One that was refused stands in no line, unless an earlier request of the same claim does.
    if (this.#isNew && isRefusal(error)) this.#beats.forget(this.#claim.grantId);
    throw error;
  }
}

function misfit(message: string): EngineError {
  return new EngineError(message, { effect: "unknown", retryable: false });
}

function isRefusal(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
}
