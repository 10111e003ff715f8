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

/** Calls the routines for session locks: on the session that holds, and for questions on any other. */
export class AdvisoryDatabase {
  readonly #sessions: Sessions;
  readonly #schema: string;
  /** Everything that this session held is gone. */
  readonly #onEnd: (session: HoldingSession) => void;

  constructor(pool: PgPool, schema: string, onEnd: (session: HoldingSession) => void) {
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
      const late = (rows: unknown) => this.#readLate(session, () => onLate(json(onlyAnswer(rows))));
      const repair: Repair = (error, ask) => this.#repair(session, error, ask);
      const text = callOf(this.#schema, routine);
      return json(onlyAnswer(await session.query(text, values, timeoutMs, late, repair)));
    } catch (error) {
      throw isAnotherSession(error) ? poolerInBetween() : failureOf(error).error;
    }
  }

  /** On any session: asks and changes no lock. */
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

  /** A late answer that cannot be read may be a grant that nobody knows of: it ends with its session. */
  #readLate(session: HoldingSession, read: () => void): void {
    try {
      read();
    } catch (error) {
      emit("failed", () => ({ during: "clean-up", error: failureOf(error).error }));
      this.#end(session);
    }
  }

  /**
   * A lock may have been granted or given back by the very statement that failed, and is not rolled back.
   * A session that cannot be tidied is ended: what it may hold unknown to us must not stay.
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
