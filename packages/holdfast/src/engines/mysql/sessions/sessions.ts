import { systemClock } from "../../../core/runtime/clock.js";
import { SessionPool } from "../../../engine-kit/sql/session-pool.js";
import { answerOf } from "../decode.js";
import type { MysqlConnection, MysqlPool } from "./client.js";
import { leavesSessionUsable, lost, notConnected } from "./failure.js";

/** Calls routines over the sessions of a pool. */
export class Sessions {
  readonly #pool: SessionPool<MysqlConnection>;

  constructor(pool: MysqlPool) {
    const borrow = () => pool.getConnection();
    this.#pool = new SessionPool(borrow, (session) => session.release(), "the database");
  }

  /** The one value that the routine selects. limitMs: how long the caller waits for it. */
  async call(text: string, limitMs: number): Promise<unknown> {
    const deadline = systemClock.now() + limitMs;
    const session = await this.#borrow(limitMs);
    try {
      const answer = await ask(session, text, deadline);
      session.release();
      return answer;
    } catch (error) {
      if (leavesSessionUsable(error)) session.release();
      else session.destroy();
      throw error;
    }
  }

  async #borrow(limitMs: number): Promise<MysqlConnection> {
    try {
      return await this.#pool.borrow(limitMs);
    } catch (error) {
      throw notConnected(error);
    }
  }
}

function ask(session: MysqlConnection, text: string, deadline: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(lost("the statement is still under way"));
    const timer = systemClock.timer(deadline - systemClock.now(), silent, false);
    session
      .query(text)
      .then(([results]) => resolve(answerOf(results)))
      .catch(reject)
      .finally(() => timer.cancel());
  });
}
