import { systemClock } from "../../clock.js";
import { EngineError } from "../../errors.js";
import type { MysqlConnection, MysqlPool } from "./client.js";
import { leavesSessionWhole, lost, notConnected } from "./failure.js";

type Row = Readonly<Record<string, unknown>>;

/** Calls routines over the sessions of a pool. */
export class Sessions {
  readonly #pool: MysqlPool;

  constructor(pool: MysqlPool) {
    this.#pool = pool;
  }

  /** The first column of what the routine selects. limitMs: for so long somebody waits for it. */
  async call(text: string, limitMs: number): Promise<unknown[]> {
    const deadline = systemClock.now() + limitMs;
    const session = await this.#borrow();
    // Nobody waits for it any more: it is not sent at all.
    if (systemClock.now() >= deadline) {
      session.release();
      throw new EngineError("all connections of the pool were in use", {
        effect: "none",
        retryable: true,
      });
    }
    try {
      const answers = await ask(session, text, deadline);
      session.release();
      return answers;
    } catch (error) {
      if (leavesSessionWhole(error)) session.release();
      else session.destroy();
      throw error;
    }
  }

  async #borrow(): Promise<MysqlConnection> {
    try {
      return await this.#pool.getConnection();
    } catch (error) {
      throw notConnected(error);
    }
  }
}

function ask(session: MysqlConnection, text: string, deadline: number): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    const silent = () => reject(lost("the statement is still under way"));
    const timer = systemClock.timer(deadline - systemClock.now(), silent, false);
    session
      .query(text)
      .then(([results]) => {
        const rows = (results as readonly (readonly Row[])[])[0] ?? [];
        resolve(rows.map((row) => Object.values(row)[0]));
      }, reject)
      .finally(() => timer.cancel());
  });
}
