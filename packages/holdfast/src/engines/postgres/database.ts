import type { Beat, Database, Hearing, Operation, Raw, Renewal } from "../../sql/database.js";
import { type Failure, failureOf } from "./failure.js";
import type { PostgresTerms } from "./options.js";
import { checkSchema } from "./schema.js";
import type { Sessions } from "./sessions.js";

/** Calls the routines that createSchema() made. */
export class PostgresDatabase implements Database {
  readonly #sessions: Sessions;
  readonly #schema: string;
  readonly #hold: "rows" | "shedlock";
  readonly #idleMs: number;
  readonly #end: () => unknown;
  /** Whether sessions are known to be the server's own, with no pooler in between. */
  direct = false;
  #checked: Promise<void> | null = null;

  constructor(sessions: Sessions, { schema, hold, idleMs }: PostgresTerms, end: () => unknown) {
    this.#sessions = sessions;
    this.#hold = hold === "shedlock" ? hold : "rows";
    this.#idleMs = idleMs;
    this.#schema = schema;
    this.#end = end;
  }

  async run(
    operations: readonly Operation[],
    waitMs: number,
    limitMs: number,
  ): Promise<readonly Raw[]> {
    const [only, ...more] = operations;
    // With every call and not with the session: behind a pooler that is somebody else's the next time.
    const rest = [waitMs, this.#idleMs];
    if (only === undefined || more.length > 0) {
      return this.#call("run($1::jsonb, $2, $3)", [JSON.stringify(operations), ...rest], limitMs);
    }
    const answer: Raw =
      only.verb === "release" && only.tombstone === 0
        ? await this.#call("hand_over($1, $2, $3, $4)", [only.name, only.id, ...rest], limitMs)
        : await this.#call("run_one($1::jsonb, $2, $3)", [JSON.stringify(only), ...rest], limitMs);
    return [answer];
  }

  heartbeat(
    beats: readonly Beat[],
    { channel, paceMs }: Hearing,
    waitMs: number,
    limitMs: number,
  ): Promise<readonly Raw[]> {
    return this.#call(
      "heartbeat($1::text[], $2::uuid[], $3::bigint[], $4, $5, $6)",
      [
        ...[beats.map(({ name }) => name), beats.map(({ id }) => id)],
        ...[beats.map(({ beat }) => beat), channel, paceMs, waitMs],
      ],
      limitMs,
    );
  }

  renew(renewals: readonly Renewal[], limitMs: number): Promise<readonly Raw[]> {
    return this.#call(
      "renew($1::text[], $2::uuid[], $3::bigint[])",
      [
        ...[renewals.map(({ name }) => name), renewals.map(({ id }) => id)],
        renewals.map(({ ttlMs }) => ttlMs),
      ],
      limitMs,
    );
  }

  check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean> {
    return this.#call("check_token($1, $2, $3)", [name, shared, String(token)], limitMs);
  }

  look(name: string, limitMs: number): Promise<Raw> {
    return this.#call("look($1)", [name], limitMs);
  }

  page(after: string, most: number, limitMs: number): Promise<readonly (readonly [string, Raw])[]> {
    return this.#call("page($1, $2)", [after, most], limitMs);
  }

  failure(error: unknown): Failure {
    return failureOf(error);
  }

  /** Looked at once; a schema that is missing may be there the next time. */
  ready(limitMs: number): Promise<void> {
    this.#checked ??= checkSchema(
      (text, values) => this.#sessions.query(text, values, limitMs),
      this.#schema,
      this.#hold,
    ).catch((error: unknown) => {
      this.#checked = null;
      throw failureOf(error).error;
    });
    return this.#checked;
  }

  /** Tells whoever listens on this channel, ourselves for one. */
  async notify(channel: string, word: string, limitMs: number): Promise<void> {
    await this.#sessions.query("SELECT pg_notify($1, $2)", [channel, word], limitMs);
  }

  async close(): Promise<void> {
    this.#sessions.close();
    await this.#end();
  }

  async #call<T>(routine: string, values: unknown[], limitMs: number): Promise<T> {
    const text = `SELECT to_jsonb("${this.#schema}".${routine}) AS answer`;
    // A pooler would meet the name on a session that has never heard of it.
    const name = this.direct ? `${this.#schema}.${routine.split("(")[0]}` : undefined;
    const [row] = await this.#sessions.query<{ answer: unknown }>(text, values, limitMs, name);
    // A client with parsers of its own may leave JSON as text.
    const answer = row?.answer;
    return (typeof answer === "string" ? JSON.parse(answer) : answer) as T;
  }
}
