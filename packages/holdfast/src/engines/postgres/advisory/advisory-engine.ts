import { createHash } from "node:crypto";
import { compileGlob } from "../../../core/acquiring/resource.js";
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
  WatchFacet,
} from "../../../engine.js";
import { failed, settleEach } from "../../../engine-kit/settle-each.js";
import {
  claimed,
  gone,
  granted,
  pageOf,
  renewed,
  revoked,
  viewOf,
} from "../../../engine-kit/sql/answers.js";
import type { RawAnswer, SqlOperation } from "../../../engine-kit/sql/database.js";
import { literalPrefix } from "../../../engine-kit/sql/engine.js";
import { OperationBatcher } from "../../../engine-kit/sql/operation-batcher.js";
import { list, lists, oneOf } from "../../../engine-kit/sql/shape.js";
import { EngineError } from "../../../errors.js";
import { Notifications } from "../notifications/notifications.js";
import type { PostgresTerms } from "../options.js";
import { clientFactory, type PgPool } from "../sessions/client.js";
import { failureOf } from "../sessions/failure.js";
import { AdvisoryDatabase } from "./advisory-database.js";
import { CurrentSession, closedError } from "./current-session.js";
import type { HoldingSession } from "./holding-session.js";
import { SessionGrants } from "./session-grants.js";

const DAY_MS = 86_400_000;
const LIMIT_MS = 5_000;

export const ADVISORY_TRAITS: EngineTraits = {
  expiry: "session",
  ttl: { minMs: 200, maxMs: DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: false,
  lockDelay: false,
  fencing: "durable",
  tokenRange: 1024,
  leaves: false,
};

/** Session locks of PostgreSQL, which exclude every program that calls pg_advisory_lock. */
export class AdvisoryEngine implements Engine {
  readonly name = "postgres";
  readonly traits = ADVISORY_TRAITS;
  readonly #terms: PostgresTerms;
  readonly #database: AdvisoryDatabase;
  readonly #session: CurrentSession;
  readonly #notifications: Notifications | null;
  readonly #changesChannel: string;
  readonly #end: () => unknown;
  readonly #grants = new SessionGrants((refs, startedAt) =>
    this.release(refs, { startedAt, timeoutMs: LIMIT_MS, order: 0 }),
  );
  readonly #listeners = new Set<(resource: string) => void>();
  readonly #batcher = new OperationBatcher({
    run: (operations, _waitMs, limitMs) => this.#run(operations, limitMs),
    failure: failureOf,
  });
  #closed = false;

  constructor(pool: PgPool, terms: PostgresTerms, end: () => unknown = () => {}) {
    this.#terms = terms;
    this.#end = end;
    const createClient = clientFactory(pool)!;
    this.#database = new AdvisoryDatabase(pool, terms.schema, (one) => this.#session.ended(one));
    const ready = () => this.#database.ready();
    this.#session = new CurrentSession(createClient, pool, ready, () => this.#onSessionEnd());
    const mark = createHash("sha256").update(terms.schema).digest("hex").slice(0, 16);
    this.#changesChannel = `holdfast_changes_${mark}`;
    const echo = (channel: string, word: string) => this.#database.notify(channel, word);
    const handlers = {
      onPush() {},
      onResume() {},
      onChange: (name: string) => this.#emitChange(name),
      echo,
    };
    this.#notifications = terms.listen
      ? new Notifications(createClient, this.#changesChannel, handlers)
      : null;
  }

  /** Opens the session and starts listening, so that the first claim need not do it. */
  async open(_limitMs?: number): Promise<void> {
    await this.#ensureSession();
    await this.#notifications?.start();
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const { resource, grantId, mode, ttlMs, tokens, label } = claim;
    const session = await this.#ensureSession();
    void this.#notifications?.start();
    const op: SqlOperation = {
      verb: "acquire",
      ...{ name: resource, key: this.#terms.prefix + resource, id: grantId },
      ...{ shared: mode === "shared", ttl: ttlMs, tokens, label },
    };
    const answer = claimed(await this.#batcher.run(op, call.timeoutMs), claim, call.startedAt);
    if (answer.kind === "queued")
      throw new EngineError("session locks have no queue", EFFECT_UNKNOWN);
    if (answer.kind !== "granted") return answer;
    // The session's end was seen before this answer, and its locks ended with it.
    if (session.ended)
      throw new EngineError("the session ended before the answer arrived", EFFECT_UNKNOWN);
    this.#grants.add({ resource, grantId, ttlMs: answer.ttlMs });
    return answer;
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    this.#refuseWhenClosed();
    const known = grants.filter(({ grantId }) => this.#grants.has(grantId));
    // Grants that ended with their session are known to be gone without asking.
    const answers = known.length === 0 ? [] : await this.#renew(known, call);
    return grants.map((grant) => {
      const answer = answers[known.indexOf(grant)] ?? ["gone", "expired"];
      try {
        return renewed(answer, call.startedAt);
      } catch (error) {
        return failed(failureOf(error).error);
      }
    });
  }

  async #renew(grants: readonly RenewRef[], call: Call): Promise<readonly RawAnswer[]> {
    const session = await this.#ensureSession();
    this.#grants.renew(grants, call.order);
    const answers = await this.#database.ask(
      session,
      "advisory_renew($1::text[], $2::uuid[], $3::bigint[], $4::integer[], $5, $6, $7)",
      [
        ...[grants.map(({ resource }) => resource), grants.map(({ grantId }) => grantId)],
        ...[grants.map(({ ttlMs }) => ttlMs), grants.map(({ index = 0 }) => index)],
        ...[call.order, String(session.id), session.pid],
      ],
      call.timeoutMs,
    );
    return lists(answers, grants.length);
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
      this.#grants.delete(grantId);
      const op = {
        name: resource,
        id: grantId,
        tombstone: tombstoneMs,
        changes: this.#changesChannel,
      };
      const answer = await this.#batcher.run({ verb: "release", ...op }, call.timeoutMs);
      if (answer[0] !== "released") return gone(answer);
      list(answer, 2);
      return { kind: "released" };
    };
    return settleEach(grants, release, (error) => failureOf(error).error);
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const values = [resource, mode === "shared", String(token)];
    return oneOf(await this.#query("advisory_check($1, $2, $3)", values, call), true, false);
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const values = [resource, String(token), force, this.#changesChannel];
    return revoked(await this.#query("advisory_revoke($1, $2, $3, $4)", values, call));
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    const values = [resource, this.#terms.prefix + resource];
    return viewOf(resource, await this.#query("advisory_look($1, $2)", values, call));
  }

  async list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    const glob = compileGlob(match);
    const values = [cursor ?? "", literalPrefix(match), max];
    const page = pageOf(await this.#query("advisory_page($1, $2, $3)", values, call));
    const views = page
      .filter(([name]) => glob.test(name))
      .map(([, view]) => view)
      .filter((view) => view.holders.length > 0);
    return { views, cursor: page.length < max ? null : page.at(-1)![0] };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#grants.close();
    this.#listeners.clear();
    this.#notifications?.close();
    await this.#session.close();
    this.#database.close();
    await this.#end();
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  async #ensureSession(): Promise<HoldingSession> {
    this.#refuseWhenClosed();
    return this.#session.get();
  }

  /** All its locks are gone. Holders of leases learn it now and not at their next renewal. */
  #onSessionEnd(): void {
    for (const name of this.#grants.clear()) this.#emitChange(name);
  }

  async #run(operations: readonly SqlOperation[], limitMs: number): Promise<unknown> {
    const session = await this.#ensureSession();
    const { idleMs } = this.#terms;
    const values = [JSON.stringify(operations), idleMs, String(session.id), session.pid];
    const addLateGrants = (answers: unknown) => {
      // The callers of these grants have given up. The grants end at their ttl, unless their
      // release arrives first.
      for (const [i, answer] of lists(answers, operations.length).entries()) {
        if (answer[0] !== "granted" || session.ended) continue;
        const { name, id } = operations[i]!;
        const { ttlMs } = granted(answer, 0);
        this.#grants.add({ resource: name, grantId: String(id), ttlMs });
      }
    };
    const routine = "advisory_run($1::jsonb, $2, $3, $4)";
    return this.#database.ask(session, routine, values, limitMs, addLateGrants);
  }

  async #query(routine: string, values: unknown[], { timeoutMs }: Call): Promise<unknown> {
    await this.#ensureSession();
    return this.#database.query(routine, values, timeoutMs);
  }

  #refuseWhenClosed(): void {
    if (this.#closed) throw closedError();
  }

  #emitChange(resource: string): void {
    for (const listener of this.#listeners) listener(resource);
  }
}

const EFFECT_UNKNOWN = { effect: "unknown", retryable: true } as const;
