import { compileGlob } from "../../core/acquiring/resource.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Failed,
  Gone,
  Granted,
  ListFilter,
  ListPage,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
} from "../../engine.js";
import { EngineError } from "../../errors.js";
import { failed, settleEach } from "../settle-each.js";
import { claimed, gone, pageOf, renewed, revoked, unexpected, viewOf } from "./answers.js";
import type { Database, RawAnswer, SqlOperation, Wakeup } from "./database.js";
import { OperationBatcher, retryConflicts } from "./operation-batcher.js";
import { SqlQueue } from "./queue.js";
import { lists } from "./shape.js";

/** Locks in the rows of a database. One routine on the server decides each answer. */
export abstract class SqlEngine implements Engine {
  abstract readonly name: string;
  abstract readonly traits: EngineTraits;
  protected readonly database: Database;
  /** Subclasses that have a queue offer this one. */
  protected readonly sqlQueue: SqlQueue;
  readonly #batcher: OperationBatcher;
  #closed = false;

  constructor(database: Database) {
    this.database = database;
    this.#batcher = new OperationBatcher(database);
    this.sqlQueue = new SqlQueue({
      database,
      open: (call) => this.#ensureReady(call),
      wakeup: () => this.wakeup(),
      claim: (verb, claim, call) => this.#claim(verb, claim, call),
      run: (operation, call) => this.#run(operation, call),
    });
  }

  /** How waiters of this process learn of their turn at this moment. */
  protected abstract wakeup(): Wakeup | Promise<Wakeup>;
  /** The channel on which holders are told of a revocation. */
  protected abstract readonly changesChannel: string;
  /** Throws unless the tables exist. */
  protected abstract ready(limitMs: number): Promise<void>;
  /** Stops listening for pushes. */
  protected abstract stopNotifications(): void;

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const answer = claimed(await this.#claim("acquire", claim, call), claim, call.startedAt);
    if (answer.kind !== "queued") return answer;
    throw unexpected(answer.kind);
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    await this.#ensureReady(call);
    const renewals = grants.map(({ resource, grantId, ttlMs, index = 0, leave = false }) => {
      return { name: resource, id: grantId, ttlMs, index, leave };
    });
    const { order, timeoutMs } = call;
    const answers = await this.#ask(async () =>
      lists(await this.database.renew(renewals, order, timeoutMs), grants.length),
    );
    return answers.map((answer) => {
      if (answer[0] === "locked") return failed(lockedByAnother());
      return this.#read(() => renewed(answer, call.startedAt));
    });
  }

  async release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    this.#refuseWhenClosed();
    const release = async ({
      resource,
      grantId,
      tombstoneMs,
    }: ReleaseRef): Promise<Released | Gone> => {
      this.sqlQueue.forget(grantId);
      const fields = { name: resource, id: grantId, tombstone: tombstoneMs };
      const answer = await this.#run({ verb: "release", ...fields }, call);
      if (answer[0] !== "released") return gone(answer);
      this.sqlQueue.deliverSuccessors(answer, call);
      return { kind: "released" };
    };
    return settleEach(grants, release, (error) => this.database.failure(error).error);
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    await this.#ensureReady(call);
    const shared = mode === "shared";
    return this.#ask(() => this.database.check(resource, shared, token, call.timeoutMs));
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const fields = { name: resource, token: String(token), force, changes: this.changesChannel };
    return revoked(await this.#run({ verb: "revoke", ...fields }, call));
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    await this.#ensureReady(call);
    return viewOf(resource, await this.#ask(() => this.database.look(resource, call.timeoutMs)));
  }

  async list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    await this.#ensureReady(call);
    const glob = compileGlob(match);
    const page = await this.#ask(async () =>
      pageOf(await this.database.page(cursor ?? "", literalPrefix(match), max, call.timeoutMs)),
    );
    const views = page
      .filter(([name]) => glob.test(name))
      .map(([, view]) => view)
      .filter((view) => view.holders.length + view.waiters.length + view.closedMs > 0);
    return { views, cursor: page.length < max ? null : page.at(-1)![0] };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.sqlQueue.close();
    this.#closed = true;
    this.stopNotifications();
    await this.database.close();
  }

  async #claim(verb: "acquire" | "enqueue", claim: Claim, call: Call): Promise<RawAnswer> {
    this.#refuseWhenClosed();
    const { channel, pollMs } = await this.wakeup();
    const { resource, grantId, mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
    return this.#run(
      {
        ...{ verb, name: resource, id: grantId, shared: mode === "shared", limit: limit ?? 0 },
        ...{ ttl: ttlMs, delay: lockDelayMs, tokens, label, channel, pace: pollMs },
      },
      call,
    );
  }

  async #run(operation: SqlOperation, call: Call): Promise<RawAnswer> {
    await this.#ensureReady(call);
    return this.#batcher.run(operation, call.timeoutMs);
  }

  async #ask<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await retryConflicts(this.database, ask);
    } catch (error) {
      throw this.database.failure(error).error;
    }
  }

  /** An answer that cannot be read fails its own grant and not the whole batch. */
  #read<T>(read: () => T): T | Failed {
    try {
      return read();
    } catch (error) {
      return failed(this.database.failure(error).error);
    }
  }

  async #ensureReady({ timeoutMs }: Call): Promise<void> {
    this.#refuseWhenClosed();
    await this.ready(timeoutMs);
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError(`the ${this.name} engine was closed`, {
      effect: "none",
      retryable: false,
    });
  }
}

/** The prefix that all matching names have. Other names need not leave the server. */
export function literalPrefix(glob: string): string {
  return glob.split(/[*?]/, 1)[0]!;
}

function lockedByAnother(): EngineError {
  return new EngineError("another transaction has locked this grant", {
    effect: "none",
    retryable: true,
  });
}
