import type { EngineTraits, QueueFacet } from "../../engine.js";
import type { Wakeup } from "../../engine-kit/sql/database.js";
import { SqlEngine } from "../../engine-kit/sql/engine.js";
import type { MysqlTerms } from "./options.js";
import type { MysqlPool } from "./sessions/client.js";
import { MysqlDatabase } from "./sessions/database.js";
import { Sessions } from "./sessions/sessions.js";

const DAY_MS = 86_400_000;

export const MYSQL_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 20, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: 1024,
  leaves: true,
};

/** A row of ShedLock's table holds one holder. */
export const SHEDLOCK_TRAITS: EngineTraits = {
  ...MYSQL_TRAITS,
  modes: ["exclusive"],
  limits: false,
};

/**
 * Locks in the rows of a MySQL or MariaDB, timed by its clock. The server sends no notifications,
 * so waiters poll.
 */
export class MysqlEngine extends SqlEngine {
  readonly name = "mysql";
  readonly traits: EngineTraits;
  readonly queue: QueueFacet = this.sqlQueue;
  protected readonly changesChannel = "";
  readonly #database: MysqlDatabase;

  /**
   * end closes what was opened for this engine alone. A pool that the user passed in stays open.
   */
  constructor(pool: MysqlPool, terms: MysqlTerms, end: () => unknown = () => {}) {
    const database = new MysqlDatabase(new Sessions(pool), terms, end);
    super(database);
    this.traits = terms.hold === "shedlock" ? SHEDLOCK_TRAITS : MYSQL_TRAITS;
    this.#database = database;
  }

  open(limitMs: number): Promise<void> {
    return this.ready(limitMs);
  }

  /** The database decides the poll interval: next-ms.sql. */
  protected wakeup(): Wakeup {
    return { channel: "", pollMs: 0 };
  }

  protected ready(limitMs: number): Promise<void> {
    return this.#database.ready(limitMs);
  }

  protected stopNotifications(): void {}
}
