import { createHash } from "node:crypto";
import type { EngineTraits, QueueFacet, WatchFacet } from "../../engine.js";
import type { Wakeup } from "../../engine-kit/sql/database.js";
import { SqlEngine } from "../../engine-kit/sql/engine.js";
import { emit } from "../../events.js";
import { Notifications } from "./notifications/notifications.js";
import type { PostgresTerms } from "./options.js";
import { clientFactory, type PgClient, type PgPool } from "./sessions/client.js";
import { PostgresDatabase } from "./sessions/database.js";
import { failureOf } from "./sessions/failure.js";
import { Sessions } from "./sessions/sessions.js";

const DAY_MS = 86_400_000;
const HEARTBEAT_MS = 1_000;
// Without notifications, the head of the queue polls for its turn.
const POLL_MS = 50;
const ECHO_LIMIT_MS = 1_000;

export const POSTGRES_TRAITS: EngineTraits = {
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
  ...POSTGRES_TRAITS,
  modes: ["exclusive"],
  limits: false,
};

/** Locks in the rows of a PostgreSQL, timed by its clock. */
export class PostgresEngine extends SqlEngine {
  readonly name = "postgres";
  readonly traits: EngineTraits;
  readonly queue: QueueFacet = this.sqlQueue;
  readonly watch?: WatchFacet;
  protected readonly changesChannel: string;
  readonly #database: PostgresDatabase;
  readonly #notifications: Notifications | null;
  readonly #changeListeners = new Set<(resource: string) => void>();

  /**
   * end closes what was opened for this engine alone. A client that the user passed in stays open.
   */
  constructor(client: PgPool | PgClient, terms: PostgresTerms, end: () => unknown = () => {}) {
    const { schema, listen, hold } = terms;
    const database = new PostgresDatabase(new Sessions(client), terms, end);
    super(database);
    this.traits = hold === "shedlock" ? SHEDLOCK_TRAITS : POSTGRES_TRAITS;
    this.#database = database;
    // PostgreSQL limits the length of channel names, so the name of the schema is hashed.
    const mark = createHash("sha256").update(schema).digest("hex").slice(0, 16);
    this.changesChannel = `holdfast_changes_${mark}`;
    const make = listen ? clientFactory(client) : null;
    this.#notifications =
      make === null
        ? null
        : new Notifications(make, this.changesChannel, this.#notificationHandlers());
    if (this.#notifications === null) return;
    this.watch = {
      onChange: (listener) => {
        this.#changeListeners.add(listener);
        return () => this.#changeListeners.delete(listener);
      },
    };
  }

  /** Checks the schema and starts listening, so that the first wait need not do it. */
  async open(limitMs: number): Promise<void> {
    await this.ready(limitMs);
    await this.#notifications?.start();
  }

  protected async wakeup(): Promise<Wakeup> {
    await this.#notifications?.start();
    this.#database.direct = this.#notifications?.isReceiving ?? false;
    return this.#notifications?.isReceiving
      ? { channel: this.#notifications.channel, pollMs: HEARTBEAT_MS }
      : { channel: "", pollMs: POLL_MS };
  }

  protected ready(limitMs: number): Promise<void> {
    return this.#database.ready(limitMs);
  }

  protected stopNotifications(): void {
    this.#changeListeners.clear();
    this.#notifications?.close();
  }

  #notificationHandlers() {
    return {
      onPush: (message: string) => this.sqlQueue.onPush(message),
      onChange: (resource: string) => {
        for (const listener of this.#changeListeners) listener(resource);
      },
      onResume: () => {
        const tell = (error: unknown) =>
          emit("failed", () => ({ during: "heartbeat", error: failureOf(error).error }));
        void this.sqlQueue.reread().catch(tell);
      },
      echo: (channel: string, word: string) => this.#database.notify(channel, word, ECHO_LIMIT_MS),
    };
  }
}
