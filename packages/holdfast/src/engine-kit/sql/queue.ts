import { sleep, systemClock } from "../../core/runtime/clock.js";
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
import { EngineError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import { SentHeartbeats } from "../sent-heartbeats.js";
import { failed } from "../settle-each.js";
import { claimed, granted, queued, unexpected } from "./answers.js";
import type { Database, Heartbeat, RawAnswer, SqlOperation, Wakeup } from "./database.js";
import { byName, retryConflicts } from "./operation-batcher.js";
import { list, lists, oneOf, text } from "./shape.js";

const CLOSE_TIMEOUT_MS = 500;
const LOCK_WAIT_MS = 250;
// grantId, number of the heartbeat, first token, number of tokens, ms.
const PUSH = /^([0-9a-f]{32}) (\d{1,15}) (\d{1,19}) (\d{1,9}) (\d{1,15})$/;

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** What a queue needs from its engine. */
export interface QueueHost {
  readonly database: Database;
  /** Throws unless the engine can be used. */
  open(call: Call): Promise<void>;
  /** How waiters of this process learn of their turn at this moment. */
  wakeup(): Wakeup | Promise<Wakeup>;
  claim(verb: "enqueue", claim: Claim, call: Call): Promise<RawAnswer>;
  run(operation: SqlOperation, call: Call): Promise<RawAnswer>;
}

/** This process's waiters in the queues of the database, and how each learns of its turn. */
export class SqlQueue implements QueueFacet {
  readonly #host: QueueHost;
  readonly #heartbeats = new SentHeartbeats();
  readonly #listeners = new Set<GrantListener>();
  #closed = false;

  constructor(host: QueueHost) {
    this.#host = host;
  }

  // Own properties, as in the other engines, because wrappers take a facet apart.
  readonly enqueue = async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
    const isNew = this.#heartbeats.enqueue(claim, call.startedAt);
    try {
      const answer = claimed(await this.#host.claim("enqueue", claim, call), claim, call.startedAt);
      if (answer.kind !== "queued") this.#heartbeats.forget(claim.grantId);
      if (answer.kind !== "busy") return answer;
      throw unexpected(answer.kind);
    } catch (error) {
      // Nobody withdraws a refused claim, so it is forgotten here. A claim that was queued before
      // may still be in the queue, so it is kept.
      const isRefused =
        error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
      if (isNew && isRefused) this.#heartbeats.forget(claim.grantId);
      throw error;
    }
  };

  readonly heartbeat = async (
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
    await this.#host.open(call);
    const answers = await this.#sendHeartbeats(waiters, call);
    return waiters.map(({ grantId }, i) => {
      const answer = answers[i]!;
      if ("kind" in answer) return answer;
      try {
        const read = heartbeatAnswer(answer, call.startedAt);
        if (read.kind !== "queued") this.#heartbeats.forget(grantId);
        return read;
      } catch (error) {
        return failed(this.#host.database.failure(error).error);
      }
    });
  };

  readonly withdraw = async (
    { resource, grantId }: GrantRef,
    call: Call,
  ): Promise<Withdrawn | Granted> => {
    const operation = { verb: "withdraw", name: resource, id: grantId } as const;
    const answer = await this.#host.run(operation, call);
    if (answer[0] === "granted") {
      const read = granted(answer, call.startedAt);
      this.#heartbeats.forget(grantId);
      return read;
    }
    this.deliverSuccessors(answer, call);
    this.#heartbeats.forget(grantId);
    return { kind: "withdrawn" };
  };

  readonly onGrant = (listener: GrantListener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  forget(grantId: string): void {
    this.#heartbeats.forget(grantId);
  }

  /**
   * Delivers a pushed grant. The grant was made after the heartbeat that the message names, so its
   * validity counts from the moment when that heartbeat was sent, however late the message is.
   * Anybody who knows the channel can send anything: an unreadable message is ignored, and the
   * next heartbeat finds the grant.
   */
  onPush(message: string): void {
    const [, grantId, beat, ...grant] = PUSH.exec(message) ?? [];
    const since =
      grantId === undefined ? null : (this.#heartbeats.at(grantId, Number(beat))?.since ?? null);
    if (grantId === undefined || since === null) return;
    const [token, tokens, ttlMs] = grant;
    this.#deliver(grantId, granted(["granted", token, Number(tokens), Number(ttlMs)], since));
  }

  /** Pushes may have been lost, so all waiters ask now instead of at their next heartbeat. */
  async reread(): Promise<void> {
    const known = this.#heartbeats.latest().map(({ ref, beat, since }) => {
      return { name: ref.resource, id: ref.grantId, beat, since };
    });
    if (known.length === 0 || this.#closed) return;
    const { database } = this.#host;
    // These repeat the numbers of the latest heartbeats: we know when those were sent in core's
    // time, and have no such instant for this call.
    const wakeup = await this.#host.wakeup();
    const asked = await database.heartbeat(known, wakeup, LOCK_WAIT_MS, 1_000);
    const answers = lists(asked, known.length);
    for (const [i, { id, since }] of known.entries()) {
      const answer = answers[i]!;
      if (answer[0] === "granted") this.#deliver(id, granted(answer, since));
    }
  }

  /**
   * The answer to a release or withdrawal may carry grants of other waiters of this process, which
   * it let in. Delivers those grants: they were made after the call was sent.
   */
  deliverSuccessors(answer: RawAnswer, { startedAt }: Call): void {
    const [kind, successors] = list(answer, 2);
    oneOf(kind, "released", "withdrawn");
    const grants = lists(successors).map(([id, ...grant]) => {
      return { id: text(id), granted: granted(["granted", ...grant], startedAt) };
    });
    for (const { id, granted } of grants) this.#deliver(id, granted);
  }

  /**
   * Withdraws the waiters of this process, so that those behind them need not wait until the server
   * notices that nobody is there.
   */
  async close(): Promise<void> {
    const call = { startedAt: systemClock.now(), timeoutMs: CLOSE_TIMEOUT_MS, order: 0 };
    const left = Promise.all(
      this.#heartbeats.waiters.map((waiter) => this.#withdrawAtClose(waiter, call)),
    );
    // A server that does not answer notices by itself, when the heartbeats stop.
    const late = sleep(systemClock, CLOSE_TIMEOUT_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    left.catch(() => {});
    this.#closed = true;
    this.#listeners.clear();
  }

  /** If its turn has come already, nobody is left to take the grant, so the grant is released. */
  async #withdrawAtClose({ resource, grantId }: GrantRef, call: Call): Promise<void> {
    const ref = { name: resource, id: grantId };
    const answer = await this.#host.run({ verb: "withdraw", ...ref }, call);
    if (answer[0] === "granted") {
      await this.#host.run({ verb: "release", ...ref, tombstone: 0 }, call);
    }
  }

  #deliver(grantId: string, answer: Granted): void {
    const waiter = this.#heartbeats.find(grantId);
    if (waiter === null) return;
    this.#heartbeats.forget(grantId);
    for (const listener of this.#listeners) listener(waiter, answer);
  }

  /**
   * If another transaction has locked a resource, only that resource's waiters fail. They share
   * one call: one call for each of many waiters would take all connections from the renewals.
   */
  async #sendHeartbeats(
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (RawAnswer | Failed)[]> {
    const { database } = this.#host;
    const wakeup = await this.#host.wakeup();
    const ask = (heartbeats: readonly Heartbeat[]) =>
      retryConflicts(database, async () =>
        lists(
          await database.heartbeat(heartbeats, wakeup, LOCK_WAIT_MS, call.timeoutMs),
          heartbeats.length,
        ),
      );
    const heartbeats = waiters.map((waiter) => {
      const beat = this.#heartbeats.next(waiter, call.startedAt);
      return { name: waiter.resource, id: waiter.grantId, beat };
    });
    try {
      return await ask(heartbeats);
    } catch (error) {
      if (database.failure(error).why !== "locked") throw database.failure(error).error;
    }
    const answers = new Map<Heartbeat, RawAnswer | Failed>();
    const ofEach = async (some: readonly Heartbeat[]) => {
      const read = await ask(some).catch((error: unknown) => database.failure(error).error);
      for (const [i, beat] of some.entries()) {
        answers.set(beat, read instanceof Error ? failed(read) : read[i]!);
      }
    };
    await Promise.all(byName(heartbeats, ({ name }) => name).map(ofEach));
    return heartbeats.map((beat) => answers.get(beat)!);
  }
}

function heartbeatAnswer(answer: RawAnswer, since: number): Queued | Granted | Unknown {
  if (answer[0] === "queued") return queued(answer);
  if (answer[0] === "granted") return granted(answer, since);
  return { kind: oneOf(list(answer, 1)[0], "unknown") };
}
