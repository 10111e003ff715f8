import type {
  Database,
  Heartbeat,
  Renewal,
  SqlOperation,
  Wakeup,
} from "../../../engine-kit/sql/database.js";
import { SchemaCheck } from "../../../engine-kit/sql/schema-check.js";
import { json, oneOf, onlyAnswer } from "../../../engine-kit/sql/shape.js";
import type { PostgresTerms } from "../options.js";
import { checkSchema } from "../schema.js";
import { type Failure, failureOf } from "./failure.js";
import { callOf, type Sessions } from "./sessions.js";

// How long to wait for a grant that another renewal has locked. On most disks the other one commits
// sooner.
const RENEWAL_WAIT_MS = 250;

/** Calls the routines that init() created. */
export class PostgresDatabase implements Database {
  readonly #sessions: Sessions;
  readonly #schema: string;
  readonly #hold: "rows" | "shedlock";
  readonly #idleMs: number;
  readonly #end: () => unknown;
  /** Whether sessions are known to be the server's own, with no pooler in between. */
  direct = false;
  readonly #check = new SchemaCheck(async (limitMs) => {
    const query = <Row>(text: string, values: unknown[]) =>
      this.#sessions.query<Row>(text, values, limitMs);
    await checkSchema(query, this.#schema, this.#hold).catch((error: unknown) => {
      throw failureOf(error).error;
    });
  });

  constructor(sessions: Sessions, { schema, hold, idleMs }: PostgresTerms, end: () => unknown) {
    this.#sessions = sessions;
    this.#hold = hold === "shedlock" ? hold : "rows";
    this.#idleMs = idleMs;
    this.#schema = schema;
    this.#end = end;
  }

  async run(
    operations: readonly SqlOperation[],
    waitMs: number,
    limitMs: number,
  ): Promise<unknown> {
    const [only, ...more] = operations;
    // Sent with every call and not set in the session: behind a pooler, the next call may use
    // another session.
    const rest = [waitMs, this.#idleMs];
    if (only === undefined || more.length > 0) {
      return this.#call("run($1::jsonb, $2, $3)", [JSON.stringify(operations), ...rest], limitMs);
    }
    const answer =
      only.verb === "release" && only.tombstone === 0
        ? await this.#call("hand_over($1, $2, $3, $4)", [only.name, only.id, ...rest], limitMs)
        : await this.#call("run_one($1::jsonb, $2, $3)", [JSON.stringify(only), ...rest], limitMs);
    return [answer];
  }

  heartbeat(
    heartbeats: readonly Heartbeat[],
    { channel, pollMs }: Wakeup,
    waitMs: number,
    limitMs: number,
  ): Promise<unknown> {
    return this.#call(
      "heartbeat($1::text[], $2::uuid[], $3::bigint[], $4, $5, $6)",
      [
        ...[heartbeats.map(({ name }) => name), heartbeats.map(({ id }) => id)],
        ...[heartbeats.map(({ beat }) => beat), channel, pollMs, waitMs],
      ],
      limitMs,
    );
  }

  renew(renewals: readonly Renewal[], order: number, limitMs: number): Promise<unknown> {
    return this.#call(
      "renew($1::text[], $2::uuid[], $3::bigint[], $4::integer[], $5::boolean[], $6, $7)",
      [
        ...[renewals.map(({ name }) => name), renewals.map(({ id }) => id)],
        ...[renewals.map(({ ttlMs }) => ttlMs), renewals.map(({ index }) => index)],
        ...[renewals.map(({ leave }) => leave), order, RENEWAL_WAIT_MS],
      ],
      limitMs,
    );
  }

  async check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean> {
    const values = [name, shared, String(token)];
    return oneOf(await this.#call("check_token($1, $2, $3)", values, limitMs), true, false);
  }

  look(name: string, limitMs: number): Promise<unknown> {
    return this.#call("look($1)", [name], limitMs);
  }

  page(after: string, prefix: string, most: number, limitMs: number): Promise<unknown> {
    return this.#call("page($1, $2, $3)", [after, prefix, most], limitMs);
  }

  failure(error: unknown): Failure {
    return failureOf(error);
  }

  ready(limitMs: number): Promise<void> {
    return this.#check.passed(limitMs);
  }

  /** Sends a notification to this channel, on which this engine listens too. */
  async notify(channel: string, word: string, limitMs: number): Promise<void> {
    await this.#sessions.query("SELECT pg_notify($1, $2)", [channel, word], limitMs);
  }

  async close(): Promise<void> {
    this.#sessions.close();
    await this.#end();
  }

  async #call(routine: string, values: unknown[], limitMs: number): Promise<unknown> {
    const text = callOf(this.#schema, routine);
    // Behind a pooler the prepared statement may be unknown to the session that runs it.
    const name = this.direct ? `${this.#schema}.${routine.split("(")[0]}` : undefined;
    return json(onlyAnswer(await this.#sessions.query(text, values, limitMs, name)));
  }
}
