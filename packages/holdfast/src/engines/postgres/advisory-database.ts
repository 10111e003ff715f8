import { emit } from "../../events.js";
import { json, onlyAnswer } from "../../sql/shape.js";
import type { PgPool } from "./client.js";
import { failureOf } from "./failure.js";
import { type HoldingSession, isAnotherSession, pooled } from "./holding-session.js";
import { checkSchema } from "./schema.js";
import { Sessions } from "./sessions.js";

const LIMIT_MS = 5_000;

/** Calls the routines for session locks: on the session that holds, and for questions on any other. */
export class AdvisoryDatabase {
  readonly #sessions: Sessions;
  readonly #schema: string;
  /** Everything that the session held is gone. */
  readonly #onEnd: () => void;

  constructor(pool: PgPool, schema: string, onEnd: () => void) {
    this.#sessions = new Sessions(pool);
    this.#schema = schema;
    this.#onEnd = onEnd;
  }

  /** Throws unless the tables are there. */
  async ready(): Promise<void> {
    const query = <Row>(text: string, values: unknown[]) =>
      this.#sessions.query<Row>(text, values, LIMIT_MS);
    await checkSchema(query, this.#schema).catch((error: unknown) => {
      throw failureOf(error).error;
    });
  }

  /** On the session that holds. onLate gets an answer that came after timeoutMs. */
  async ask(
    session: HoldingSession,
    routine: string,
    values: unknown[],
    timeoutMs: number,
    onLate: (answer: unknown) => void = () => {},
  ): Promise<unknown> {
    try {
      const late = (rows: unknown) => this.#late(session, () => onLate(json(onlyAnswer(rows))));
      return json(onlyAnswer(await session.query(this.#text(routine), values, timeoutMs, late)));
    } catch (error) {
      if (isAnotherSession(error)) {
        this.#end(session);
        throw pooled();
      }
      throw failureOf(error).error;
    }
  }

  /** On any session: asks and changes no lock. */
  async look(routine: string, values: unknown[], timeoutMs: number): Promise<unknown> {
    try {
      return json(onlyAnswer(await this.#sessions.query(this.#text(routine), values, timeoutMs)));
    } catch (error) {
      throw failureOf(error).error;
    }
  }

  /** A session that cannot be tidied is ended: what it may hold unknown to us must not stay. */
  async tidy(session: HoldingSession): Promise<void> {
    if (session.ended) return;
    try {
      const text = `SELECT "${this.#schema}".advisory_tidy($1)`;
      await session.query(text, [String(session.id)], LIMIT_MS);
    } catch (error) {
      emit("failed", () => ({ during: "clean-up", error }));
      this.#end(session);
    }
  }

  async notify(channel: string, word: string): Promise<void> {
    await this.#sessions.query("SELECT pg_notify($1, $2)", [channel, word], LIMIT_MS);
  }

  close(): void {
    this.#sessions.close();
  }

  /** A late answer that cannot be read may be a grant that nobody knows of: it ends with its session. */
  #late(session: HoldingSession, read: () => void): void {
    try {
      read();
    } catch (error) {
      emit("failed", () => ({ during: "clean-up", error }));
      this.#end(session);
    }
  }

  #text(routine: string): string {
    return `SELECT to_jsonb("${this.#schema}".${routine}) AS answer`;
  }

  #end(session: HoldingSession): void {
    session.close();
    this.#onEnd();
  }
}
