import { systemClock, type Timer } from "../../../core/runtime/clock.js";
import type { Host } from "../../../url.js";
import { Connection, type TlsOptions } from "./connection.js";
import { ServerRotation } from "./server-rotation.js";

interface Tasks {
  /** The first packet of a connection. */
  hello(): Buffer;
  onPacket(packet: Buffer): void;
  onLost(error: Error): void;
}

/** Connects to one server after another, until one of them welcomes the session. */
export class Connector {
  readonly #tls: TlsOptions | null;
  readonly #tasks: Tasks;
  readonly #rotation: ServerRotation;
  #connection: Connection | null = null;
  #helloSentAt = 0;
  #timer: Timer | null = null;

  constructor(hosts: readonly Host[], tls: TlsOptions | null, tasks: Tasks) {
    this.#tls = tls;
    this.#tasks = tasks;
    this.#rotation = new ServerRotation(hosts);
  }

  get connection(): Connection | null {
    return this.#connection;
  }

  /** When the first packet of the latest connection was sent. */
  get helloSentAt(): number {
    return this.#helloSentAt;
  }

  connect(timeoutMs: number): void {
    this.#helloSentAt = systemClock.now();
    let connection: Connection;
    const events = {
      onPacket: (packet: Buffer) => this.#tasks.onPacket(packet),
      onEnd: (error: Error) => this.#lost(connection, error),
    };
    connection = new Connection(this.#rotation.next(), this.#tls, this.#tasks.hello(), events);
    this.#connection = connection;
    const attemptMs = this.#rotation.attemptMs(timeoutMs);
    const late = () => connection.end(new Error(`no answer within ${Math.round(attemptMs)} ms`));
    this.#arm(attemptMs, late);
  }

  /** Connects to the next server, after a pause. */
  reconnect(timeoutMs: number): void {
    this.#arm(this.#rotation.pauseMs(timeoutMs), () => this.connect(timeoutMs));
  }

  /** A server welcomed the session, so the attempt is over. */
  welcomed(): void {
    this.#rotation.welcomed();
    this.#timer?.cancel();
  }

  close(why: Error): void {
    this.#timer?.cancel();
    this.#connection?.end(why);
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = null;
    this.#tasks.onLost(error);
  }

  #arm(delayMs: number, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = systemClock.timer(delayMs, callback, false);
  }
}
