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
const DEAF =
  "LISTEN hears nothing here: a transaction pooler is in between. Waiters poll instead; " +
  "listen: false says that this is meant";

export interface Ears {
  onPush(message: string): void;
  onChange(resource: string): void;
  /** Hears again, after a time in which it may have missed something. */
  onReturn(): void;
  /** Sends this word to this channel on another connection. */
  echo(channel: string, word: string): Promise<void>;
}

/**
 * One connection that listens for all waiters of an engine. It comes back by itself, and counts as
 * hearing only once it has heard its own echo: behind a transaction pooler LISTEN succeeds, and
 * nothing is ever heard.
 */
export class Listener {
  readonly channel = `holdfast_${randomBytes(12).toString("hex")}`;
  readonly #make: () => PgOwnClient;
  readonly #changes: string;
  readonly #ears: Ears;
  #client: PgOwnClient | null = null;
  #hears = false;
  #started: Promise<void> | null = null;
  #heard: () => void = () => {};
  #pauseMs = FIRST_PAUSE_MS;
  #timer: Timer | null = null;
  #closed = false;
  #toldDeaf = false;

  constructor(make: () => PgOwnClient, changes: string, ears: Ears) {
    this.#make = make;
    this.#changes = changes;
    this.#ears = ears;
  }

  /** Whether pushes arrive at this moment. */
  get hears(): boolean {
    return this.#hears;
  }

  /** Begins to listen; resolves when it hears, or when waiting for that makes no sense any more. */
  start(): Promise<void> {
    this.#started ??= soon(FIRST_WAIT_MS, this.#connect());
    return this.#started;
  }

  close(): void {
    this.#closed = true;
    this.#hears = false;
    this.#timer?.cancel();
    this.#drop();
  }

  async #connect(): Promise<void> {
    const client = this.#make();
    this.#client = client;
    const gone = (error?: unknown) => this.#lost(client, error);
    client.on("error", gone);
    client.on("end", () => gone());
    client.on("notification", ({ channel, payload }) => this.#hear(channel, payload ?? ""));
    // A server that accepts and says nothing must not hold this up for ever.
    const late = systemClock.timer(CONNECT_WITHIN_MS, () => gone(new Error("no answer")), false);
    try {
      await client.connect();
      // Hearing is no reason for a process to stay; waiting is, and keeps timers of its own.
      client.unref?.();
      await client.query(`LISTEN "${this.channel}"; LISTEN "${this.#changes}"`);
      if (await this.#hearsItself()) this.#hearsAgain(client);
      else this.#deaf(client);
    } catch (error) {
      gone(error);
    } finally {
      late.cancel();
    }
  }

  async #hearsItself(): Promise<boolean> {
    let hears = false;
    const heard = new Promise<void>((resolve) => {
      this.#heard = () => {
        hears = true;
        resolve();
      };
    });
    await this.#ears.echo(this.channel, "echo");
    await soon(ECHO_WITHIN_MS, heard);
    return hears;
  }

  #hearsAgain(client: PgOwnClient): void {
    if (client !== this.#client) return;
    this.#hears = true;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#ears.onReturn();
  }

  /**
   * It mostly stays so: the same pooler would be met again. On a server that was only slow the echo still
   * comes, and then it hears.
   */
  #deaf(client: PgOwnClient): void {
    if (client !== this.#client) return;
    this.#heard = () => this.#hearsAgain(client);
    const giveUp = () => {
      if (client === this.#client && !this.#hears) this.#drop();
    };
    this.#timer = systemClock.timer(LATE_ECHO_WITHIN_MS, giveUp, false);
    if (!this.#toldDeaf) emit("failed", () => ({ during: "push", error: new Error(DEAF) }));
    this.#toldDeaf = true;
  }

  #hear(channel: string, message: string): void {
    if (channel === this.#changes) this.#ears.onChange(message);
    else if (message === "echo") this.#heard();
    else this.#ears.onPush(message);
  }

  #lost(client: PgOwnClient, error: unknown): void {
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
    this.#hears = false;
    // What it still has to say interests nobody, and must not end the process.
    client?.end().catch(() => {});
  }
}

/** Waits for this, and not for longer than so. Leaves no timer. */
function soon(limitMs: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = systemClock.timer(limitMs, resolve, true);
    void work.finally(() => {
      timer.cancel();
      resolve();
    });
  });
}
