import { sleep, systemClock } from "../clock.js";
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
  Withdrawn,
} from "../engine.js";
import { EngineError } from "../errors.js";
import { emit } from "../events.js";
import { globToRegExp } from "../resource.js";
import { claimed, gone, granted, queued, viewOf } from "./answers.js";
import { Beats } from "./beats.js";
import type { Beat, Database, Hearing, Operation, Raw } from "./database.js";
import { Desk, retried } from "./desk.js";

const LEAVING_MS = 500;
const LOCK_WAIT_MS = 250;

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** Locks in the rows of a database. Every answer is decided by one routine, on the server. */
export abstract class SqlEngine implements Engine {
  abstract readonly name: string;
  abstract readonly traits: EngineTraits;
  protected readonly database: Database;
  protected readonly beats = new Beats();
  readonly #desk: Desk;
  readonly #grantListeners = new Set<GrantListener>();
  #closed = false;

  constructor(database: Database) {
    this.database = database;
    this.#desk = new Desk(database);
  }

  /** How our waiters learn of their turn at this moment. */
  protected abstract hearing(): Hearing | Promise<Hearing>;
  /** Where holders hear of a revocation. */
  protected abstract readonly changes: string;
  /** Throws unless the tables are there. */
  protected abstract ready(limitMs: number): Promise<void>;
  /** Ends what was begun for pushes. */
  protected abstract deafen(): void;

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const answer = claimed(await this.#claim("acquire", claim, call), claim, call.startedAt);
    if (answer.kind !== "queued") return answer;
    throw unexpected(answer.kind);
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    await this.#open(call);
    const renewals = grants.map(({ resource, grantId, ttlMs }) => {
      return { name: resource, id: grantId, ttlMs };
    });
    const answers = await this.#ask(() => this.database.renew(renewals, call.timeoutMs));
    return answers.map((answer, i) => {
      const { ttlMs } = grants[i]!;
      if (answer[0] === "renewed") return { kind: "renewed", since: call.startedAt, ttlMs };
      if (answer[0] !== "locked") return gone(answer);
      const error = new EngineError("another transaction is at work on this grant", {
        effect: "none",
        retryable: true,
      });
      return { kind: "failed", effect: "none", error };
    });
  }

  async release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    this.#refuseWhenClosed();
    return Promise.all(
      grants.map(async ({ resource, grantId, tombstoneMs }) => {
        this.beats.forget(grantId);
        const words = { name: resource, id: grantId, tombstone: tombstoneMs };
        try {
          const answer = await this.#run({ verb: "release", ...words }, call);
          this.#succeed(answer, call);
          return answer[0] === "released" ? { kind: "released" } : gone(answer);
        } catch (error) {
          const failure = this.database.failure(error).error;
          const effect = failure instanceof EngineError ? failure.effect : "unknown";
          return { kind: "failed", effect, error: failure } as const;
        }
      }),
    );
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    await this.#open(call);
    const shared = mode === "shared";
    return this.#ask(() => this.database.check(resource, shared, token, call.timeoutMs));
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const words = { name: resource, token: String(token), force, changes: this.changes };
    const answer = await this.#run({ verb: "revoke", ...words }, call);
    return answer[0] === "revoked" ? "revoked" : "gone";
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    await this.#open(call);
    return viewOf(resource, await this.#ask(() => this.database.look(resource, call.timeoutMs)));
  }

  async list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    await this.#open(call);
    const glob = globToRegExp(match);
    const page = await this.#ask(() => this.database.page(cursor ?? "", max, call.timeoutMs));
    const views = page
      .filter(([name]) => glob.test(name))
      .map(([name, answer]) => viewOf(name, answer))
      .filter((view) => view.holders.length + view.waiters.length + view.closedMs > 0);
    return { views, cursor: page.length < max ? null : page.at(-1)![0] };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#leaveLines();
    this.#closed = true;
    this.#grantListeners.clear();
    this.deafen();
    await this.database.close();
  }

  /** What an engine offers as its queue. */
  protected readonly line: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      this.#refuseWhenClosed();
      this.beats.start(claim, call.startedAt);
      const answer = claimed(await this.#claim("enqueue", claim, call), claim, call.startedAt);
      if (answer.kind !== "queued") this.beats.forget(claim.grantId);
      if (answer.kind !== "busy") return answer;
      throw unexpected(answer.kind);
    },

    heartbeat: async (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
      await this.#open(call);
      const answers = await this.#beat(waiters, call);
      return waiters.map(({ grantId }, i) => {
        const answer = answers[i]!;
        if ("kind" in answer) return answer;
        if (answer[0] === "queued") return queued(answer);
        this.beats.forget(grantId);
        return answer[0] === "granted" ? granted(answer, call.startedAt) : { kind: "unknown" };
      });
    },

    withdraw: async ({ resource, grantId }: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const answer = await this.#run({ verb: "withdraw", name: resource, id: grantId }, call);
      this.beats.forget(grantId);
      this.#succeed(answer, call);
      if (answer[0] === "granted") return granted(answer, call.startedAt);
      return { kind: "withdrawn" };
    },

    onGrant: (listener: GrantListener) => {
      this.#grantListeners.add(listener);
      return () => this.#grantListeners.delete(listener);
    },
  };

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
   */
  protected pushed(message: string): void {
    const [grantId = "", beat = "", token = "", tokens = "", ttlMs = ""] = message.split(" ");
    const since = this.beats.since(grantId, Number(beat));
    if (since !== null) this.#deliver(grantId, granted(["granted", token, tokens, ttlMs], since));
  }

  /** Pushes may have been lost: whoever waits asks now, not at its next heartbeat. */
  protected async reread(): Promise<void> {
    const known = this.beats.latest();
    if (known.length === 0 || this.#closed) return;
    // No new number: when these were sent we know in core's time, and now we do not.
    const answers = await this.database.heartbeat(known, await this.hearing(), LOCK_WAIT_MS, 1_000);
    for (const [i, { id, since }] of known.entries()) {
      const answer = answers[i]!;
      if (answer[0] === "granted") this.#deliver(id, granted(answer, since));
    }
  }

  /** Our own waiters that were let in by our own call: their grants were made after it was sent. */
  #succeed([kind, told]: Raw, { startedAt }: Call): void {
    if (kind !== "released" && kind !== "withdrawn") return;
    for (const [id, ...grant] of (told ?? []) as Raw[]) {
      this.#deliver(String(id), granted(["granted", ...grant], startedAt));
    }
  }

  #deliver(grantId: string, answer: Granted): void {
    const waiter = this.beats.find(grantId);
    if (waiter === null) return;
    this.beats.forget(grantId);
    for (const listener of this.#grantListeners) listener(waiter, answer);
  }

  /** A resource that somebody has locked fails alone; those of the others are answered. */
  async #beat(waiters: readonly GrantRef[], call: Call): Promise<readonly (Raw | Failed)[]> {
    const hearing = await this.hearing();
    const ask = (beats: readonly Beat[]) =>
      retried(this.database, () =>
        this.database.heartbeat(beats, hearing, LOCK_WAIT_MS, call.timeoutMs),
      );
    const beats = waiters.map((waiter) => {
      const beat = this.beats.next(waiter, call.startedAt);
      return { name: waiter.resource, id: waiter.grantId, beat };
    });
    try {
      return await ask(beats);
    } catch (error) {
      if (this.database.failure(error).why !== "locked") throw this.database.failure(error).error;
    }
    return Promise.all(
      beats.map(async (beat) => {
        try {
          return (await ask([beat]))[0]!;
        } catch (error) {
          const failure = this.database.failure(error).error;
          const effect = failure instanceof EngineError ? failure.effect : "unknown";
          return { kind: "failed", effect, error: failure } as const;
        }
      }),
    );
  }

  /** Whoever comes after our waiters should not have to find out that nobody is there. */
  async #leaveLines(): Promise<void> {
    const call = { startedAt: systemClock.now(), timeoutMs: LEAVING_MS };
    const left = Promise.all(
      this.beats.waiters.map(({ resource, grantId }) =>
        this.#run({ verb: "withdraw", name: resource, id: grantId }, call),
      ),
    );
    // A server that does not answer finds out by itself, when our heartbeats stay away.
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) => this.failed("close", error));
    left.catch(() => {});
  }

  async #claim(verb: "acquire" | "enqueue", claim: Claim, call: Call): Promise<Raw> {
    this.#refuseWhenClosed();
    const { channel, paceMs } = await this.hearing();
    const { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
    return this.#run(
      {
        ...{ verb, name: resource, id: grantId, shared: mode === "shared", limit: limit ?? 0 },
        ...{ ttl: ttlMs, delay: lockDelayMs, tokens, label, channel, pace: paceMs },
      },
      call,
    );
  }

  async #run(operation: Operation, call: Call): Promise<Raw> {
    await this.#open(call);
    return this.#desk.run(operation, call.timeoutMs);
  }

  async #ask<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await retried(this.database, ask);
    } catch (error) {
      throw this.database.failure(error).error;
    }
  }

  async #open({ timeoutMs }: Call): Promise<void> {
    this.#refuseWhenClosed();
    await this.ready(timeoutMs);
  }

  protected failed(during: string, error: unknown): void {
    emit("failed", () => ({ during, error }));
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError(`the ${this.name} engine was closed`, {
      effect: "none",
      retryable: false,
    });
  }
}

function unexpected(kind: string): EngineError {
  return new EngineError(`the database answered ${kind} to a claim that cannot be so`, {
    effect: "unknown",
    retryable: false,
  });
}
