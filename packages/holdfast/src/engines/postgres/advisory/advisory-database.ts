import { systemClock } from "../../../core/runtime/clock.js";
import { json, onlyAnswer } from "../../../engine-kit/sql/shape.js";
import { emit } from "../../../events.js";
import { checkSchema } from "../schema.js";
import type { PgPool } from "../sessions/client.js";
import { failureOf } from "../sessions/failure.js";
import { callOf, Sessions } from "../sessions/sessions.js";
import {
  type HoldingSession,
  isAnotherSession,
  poolerInBetween,
  type Repair,
} from "./holding-session.js";

const LIMIT_MS = 5_000;

/**
 * Calls the routines for session locks: those that change locks on the session that holds them, and
 * queries on any other session.
 */
export class AdvisoryDatabase {
  readonly #sessions: Sessions;
  readonly #schema: string;
  /** Called when a session ended, and all its locks with it. */
  readonly #onEnd: (session: HoldingSession) => void;

  constructor(pool: PgPool, schema: string, onEnd: (session: HoldingSession) => void) {
    this.#sessions = new Sessions(pool);
    this.#schema = schema;
    this.#onEnd = onEnd;
  }

  /** Throws unless the tables exist. */
  async ready(): Promise<void> {
    const query = <Row>(text: string, values: unknown[]) =>
      this.#sessions.query<Row>(text, values, LIMIT_MS);
    await checkSchema(query, this.#schema).catch((error: unknown) => {
      throw failureOf(error).error;
    });
  }

  /**
   * Calls on the session that holds the locks. onLate gets an answer that arrives after timeoutMs.
   */
  async ask(
    session: HoldingSession,
    routine: string,
    values: unknown[],
    timeoutMs: number,
    onLate: (answer: unknown) => void = () => {},
  ): Promise<unknown> {
    try {
      const late = (rows: unknown) => this.#readLate(session, () => onLate(json(onlyAnswer(rows))));
      const repair: Repair = (error, ask) => this.#repair(session, error, ask);
      const text = callOf(this.#schema, routine);
      return json(onlyAnswer(await session.query(text, values, timeoutMs, late, repair)));
    } catch (error) {
      throw isAnotherSession(error) ? poolerInBetween() : failureOf(error).error;
    }
  }

  /** Calls on any session: a query that changes no lock. */
  async query(routine: string, values: unknown[], timeoutMs: number): Promise<unknown> {
    try {
      const text = callOf(this.#schema, routine);
      return json(onlyAnswer(await this.#sessions.query(text, values, timeoutMs)));
    } catch (error) {
      throw failureOf(error).error;
    }
  }

  async notify(channel: string, word: string): Promise<void> {
    await this.#sessions.query("SELECT pg_notify($1, $2)", [channel, word], LIMIT_MS);
  }

  close(): void {
    this.#sessions.close();
  }

  /**
   * A late answer that cannot be read may be a grant that nobody knows of. Ending the session ends
   * that grant.
   */
  #readLate(session: HoldingSession, read: () => void): void {
    try {
      read();
    } catch (error) {
      emit("failed", () => ({ during: "clean-up", error: failureOf(error).error }));
      this.#end(session);
    }
  }

  /**
   * The failed statement may have taken or released a lock, which is not rolled back. A session
   * that cannot be repaired is ended: it may hold locks that we do not know of.
   */
  async #repair(
    session: HoldingSession,
    failed: unknown,
    ask: Parameters<Repair>[1],
  ): Promise<void> {
    if (isAnotherSession(failed)) return this.#end(session);
    const timer = systemClock.timer(LIMIT_MS, () => this.#end(session), false);
    try {
      await ask(callOf(this.#schema, "advisory_tidy($1)"), [String(session.id)]);
    } catch (error) {
      emit("failed", () => ({ during: "clean-up", error: failureOf(error).error }));
      this.#end(session);
    } finally {
      timer.cancel();
    }
  }

  #end(session: HoldingSession): void {
    session.close();
    this.#onEnd(session);
  }
}
