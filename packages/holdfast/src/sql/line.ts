import { sleep, systemClock } from "../clock.js";
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
} from "../engine.js";
import { emit } from "../events.js";
import { claimed, failed, granted, queued, unexpected } from "./answers.js";
import { Beats } from "./beats.js";
import type { Beat, Database, Hearing, Operation, Raw } from "./database.js";
import { retried } from "./desk.js";

const LEAVING_MS = 500;
const LOCK_WAIT_MS = 250;

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** What a line asks of the engine that it belongs to. */
export interface LineHost {
  readonly database: Database;
  /** Throws unless the engine may be used. */
  open(call: Call): Promise<void>;
  /** How our waiters learn of their turn at this moment. */
  hearing(): Hearing | Promise<Hearing>;
  claim(verb: "enqueue", claim: Claim, call: Call): Promise<Raw>;
  run(operation: Operation, call: Call): Promise<Raw>;
}

/** Our waiters in the database's lines, and how each learns of its turn. */
export class Line implements QueueFacet {
  readonly #host: LineHost;
  readonly #beats = new Beats();
  readonly #listeners = new Set<GrantListener>();
  #closed = false;

  constructor(host: LineHost) {
    this.#host = host;
  }

  // Properties of its own, as the other engines have them: a facet may be taken apart by whoever wraps it.
  readonly enqueue = async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
    this.#beats.start(claim, call.startedAt);
    const answer = claimed(await this.#host.claim("enqueue", claim, call), claim, call.startedAt);
    if (answer.kind !== "queued") this.#beats.forget(claim.grantId);
    if (answer.kind !== "busy") return answer;
    throw unexpected(answer.kind);
  };

  readonly heartbeat = async (
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
    await this.#host.open(call);
    const answers = await this.#beat(waiters, call);
    return waiters.map(({ grantId }, i) => {
      const answer = answers[i]!;
      if ("kind" in answer) return answer;
      if (answer[0] === "queued") return queued(answer);
      this.#beats.forget(grantId);
      return answer[0] === "granted" ? granted(answer, call.startedAt) : { kind: "unknown" };
    });
  };

  readonly withdraw = async (
    { resource, grantId }: GrantRef,
    call: Call,
  ): Promise<Withdrawn | Granted> => {
    const operation = { verb: "withdraw", name: resource, id: grantId } as const;
    const answer = await this.#host.run(operation, call);
    this.#beats.forget(grantId);
    this.succeed(answer, call);
    if (answer[0] === "granted") return granted(answer, call.startedAt);
    return { kind: "withdrawn" };
  };

  readonly onGrant = (listener: GrantListener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  forget(grantId: string): void {
    this.#beats.forget(grantId);
  }

  /**
   * A grant that was pushed. It was made after the heartbeat that the message names, so its life is
   * counted from where that one was sent, however late the message is.
   */
  pushed(message: string): void {
    const [grantId = "", beat = "", token = "", tokens = "", ttlMs = ""] = message.split(" ");
    const since = this.#beats.since(grantId, Number(beat));
    if (since !== null) this.#deliver(grantId, granted(["granted", token, tokens, ttlMs], since));
  }

  /** Pushes may have been lost: whoever waits asks now, not at its next heartbeat. */
  async reread(): Promise<void> {
    const known = this.#beats.latest();
    if (known.length === 0 || this.#closed) return;
    const { database } = this.#host;
    // No new number: when these were sent we know in core's time, and now we do not.
    const hearing = await this.#host.hearing();
    const answers = await database.heartbeat(known, hearing, LOCK_WAIT_MS, 1_000);
    for (const [i, { id, since }] of known.entries()) {
      const answer = answers[i]!;
      if (answer[0] === "granted") this.#deliver(id, granted(answer, since));
    }
  }

  /** Our own waiters that were let in by our own call: their grants were made after it was sent. */
  succeed([kind, told]: Raw, { startedAt }: Call): void {
    if (kind !== "released" && kind !== "withdrawn") return;
    for (const [id, ...grant] of (told ?? []) as Raw[]) {
      this.#deliver(String(id), granted(["granted", ...grant], startedAt));
    }
  }

  /** Whoever comes after our waiters should not have to find out that nobody is there. */
  async close(): Promise<void> {
    const call = { startedAt: systemClock.now(), timeoutMs: LEAVING_MS };
    const left = Promise.all(
      this.#beats.waiters.map(({ resource, grantId }) =>
        this.#host.run({ verb: "withdraw", name: resource, id: grantId }, call),
      ),
    );
    // A server that does not answer finds out by itself, when our heartbeats stay away.
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    left.catch(() => {});
    this.#closed = true;
    this.#listeners.clear();
  }

  #deliver(grantId: string, answer: Granted): void {
    const waiter = this.#beats.find(grantId);
    if (waiter === null) return;
    this.#beats.forget(grantId);
    for (const listener of this.#listeners) listener(waiter, answer);
  }

  /** A resource that somebody has locked fails alone; those of the others are answered. */
  async #beat(waiters: readonly GrantRef[], call: Call): Promise<readonly (Raw | Failed)[]> {
    const { database } = this.#host;
    const hearing = await this.#host.hearing();
    const ask = (beats: readonly Beat[]) =>
      retried(database, () => database.heartbeat(beats, hearing, LOCK_WAIT_MS, call.timeoutMs));
    const beats = waiters.map((waiter) => {
      const beat = this.#beats.next(waiter, call.startedAt);
      return { name: waiter.resource, id: waiter.grantId, beat };
    });
    try {
      return await ask(beats);
    } catch (error) {
      if (database.failure(error).why !== "locked") throw database.failure(error).error;
    }
    return Promise.all(
      beats.map(async (beat) => {
        try {
          return (await ask([beat]))[0]!;
        } catch (error) {
          return failed(database.failure(error).error);
        }
      }),
    );
  }
}
