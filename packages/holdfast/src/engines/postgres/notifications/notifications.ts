import { randomBytes } from "node:crypto";
import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { PgOwnClient } from "../sessions/client.js";
import { failureOf } from "../sessions/failure.js";

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;
const ECHO_WITHIN_MS = 1_000;
const LATE_ECHO_WITHIN_MS = 60_000;
const FIRST_WAIT_MS = 300;
const CONNECT_WITHIN_MS = 5_000;
const NOTHING_RECEIVED =
  "LISTEN receives nothing here: a transaction pooler is in between. Waiters poll instead; " +
  "set listen: false if this is intended";

export interface NotificationHandlers {
  onPush(message: string): void;
  onChange(resource: string): void;
  /** Called when notifications arrive again. Some may have been missed before. */
  onResume(): void;
  /** Sends this word to this channel, on another connection. */
  echo(channel: string, word: string): Promise<void>;
}

/**
 * One connection that listens for all waiters of an engine. It reconnects by itself. It counts as
 * receiving only after its own echo arrived: behind a transaction pooler LISTEN succeeds, but
 * nothing ever arrives.
 */
export class Notifications {
  readonly channel = `holdfast_${randomBytes(12).toString("hex")}`;
  readonly #createClient: () => PgOwnClient;
  readonly #changesChannel: string;
  readonly #handlers: NotificationHandlers;
  #client: PgOwnClient | null = null;
  #isReceiving = false;
  #started: Promise<void> | null = null;
  #onEcho: () => void = () => {};
  #pauseMs = FIRST_PAUSE_MS;
  #timer: Timer | null = null;
  #closed = false;
  #missingEchoReported = false;

  constructor(createClient: () => PgOwnClient, changes: string, handlers: NotificationHandlers) {
    this.#createClient = createClient;
    this.#changesChannel = changes;
    this.#handlers = handlers;
  }

  /** Whether notifications arrive at this moment. */
  get isReceiving(): boolean {
    return this.#isReceiving;
  }

  /**
   * Starts listening. Resolves when notifications arrive, or when waiting longer makes no sense.
   */
  start(): Promise<void> {
    this.#started ??= atMost(FIRST_WAIT_MS, this.#connect());
    return this.#started;
  }

  close(): void {
    this.#closed = true;
    this.#isReceiving = false;
    this.#timer?.cancel();
    this.#drop();
  }

  async #connect(): Promise<void> {
    const client = this.#createClient();
    this.#client = client;
    const onLost = (error?: unknown) => this.#reconnectAfter(client, error);
    client.on("error", onLost);
    client.on("end", () => onLost());
    client.on("notification", ({ channel, payload }) => this.#dispatch(channel, payload ?? ""));
    // A server that accepts the connection and never answers must not block this for ever.
    const late = systemClock.timer(CONNECT_WITHIN_MS, () => onLost(new Error("no answer")), false);
    try {
      await client.connect();
      // Listening alone does not keep the process alive. A waiter does, with its own timer.
      client.unref?.();
      await client.query(`LISTEN "${this.channel}"; LISTEN "${this.#changesChannel}"`);
      if (await this.#receivesOwnEcho()) this.#startReceiving(client);
      else this.#onMissingEcho(client);
    } catch (error) {
      onLost(error);
    } finally {
      late.cancel();
    }
  }

  async #receivesOwnEcho(): Promise<boolean> {
    let received = false;
    const echoed = new Promise<void>((resolve) => {
      this.#onEcho = () => {
        received = true;
        resolve();
      };
    });
    await this.#handlers.echo(this.channel, "echo");
    await atMost(ECHO_WITHIN_MS, echoed);
    return received;
  }

  #startReceiving(client: PgOwnClient): void {
    if (client !== this.#client) return;
    this.#isReceiving = true;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#handlers.onResume();
  }

  /**
   * A new connection would meet the same pooler, so this does not reconnect. On a server that was
   * only slow the echo still arrives, and then notifications work.
   */
  #onMissingEcho(client: PgOwnClient): void {
    if (client !== this.#client) return;
    this.#onEcho = () => this.#startReceiving(client);
    const giveUp = () => {
      if (client === this.#client && !this.#isReceiving) this.#drop();
    };
    this.#timer = systemClock.timer(LATE_ECHO_WITHIN_MS, giveUp, false);
    if (!this.#missingEchoReported)
      emit("failed", () => ({ during: "push", error: new Error(NOTHING_RECEIVED) }));
    this.#missingEchoReported = true;
  }

  #dispatch(channel: string, message: string): void {
    if (channel === this.#changesChannel) this.#handlers.onChange(message);
    else if (message === "echo") this.#onEcho();
    else this.#handlers.onPush(message);
  }

  #reconnectAfter(client: PgOwnClient, error: unknown): void {
    if (client !== this.#client) return;
    this.#drop();
    if (this.#closed) return;
    if (error !== undefined) {
      emit("failed", () => ({ during: "push", error: failureOf(error).error }));
    }
    this.#timer = systemClock.timer(this.#pauseMs, () => void this.#connect(), false);
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }

  #drop(): void {
    const client = this.#client;
    this.#client = null;
    this.#isReceiving = false;
    // Errors of a dropped connection do not matter, and must not end the process.
    client?.end().catch(() => {});
  }
}

/** Waits for work, but no longer than limitMs. Leaves no timer behind. */
function atMost(limitMs: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = systemClock.timer(limitMs, resolve, true);
    void work.finally(() => {
      timer.cancel();
      resolve();
    });
  });
}
