import { createConnection, createServer, type Socket } from "node:net";

/**
 * A relay that can hold back some requests, or the answers to them, while everything else passes.
 * So a caller does not know what its request has done, or will do. The gateway answers the requests
 * of a connection in turn, so the answers of a connection are held back as a whole.
 */
export class HoldingRelay implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  /** The connections whose answers are held back. */
  readonly #paused = new Set<Socket>();
  readonly #server;
  readonly #heldRequests: (() => void)[] = [];
  #part: string | null = null;
  #holdsRequests = false;
  #held = 0;

  constructor(target: number) {
    this.#server = createServer((client) => {
      const server = createConnection(target, "127.0.0.1");
      client.on("data", (bytes) => {
        const isMeant = this.#part !== null && bytes.includes(this.#part);
        if (isMeant) this.#held++;
        if (isMeant && this.#holdsRequests) {
          this.#heldRequests.push(() =>
            server.destroyed ? sendAnew(target, bytes) : void server.write(bytes),
          );
          return;
        }
        if (isMeant) {
          this.#paused.add(server);
          server.pause();
        }
        server.write(bytes);
      });
      server.on("data", (bytes) => client.write(bytes));
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const) {
        this.#sockets.add(one);
        one.setNoDelay(true);
        one.on("error", () => other.destroy());
        one.on("close", () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, "127.0.0.1", listening));
    return this;
  }

  get endpoint(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the relay is closed");
    return `127.0.0.1:${address.port}`;
  }

  /** From now on, answers to requests that contain this are held back. */
  holdAnswers(part: string): void {
    this.#part = part;
  }

  /** From now on, requests that contain this are held back, also when their sender gives up. */
  holdRequests(part: string): void {
    this.#part = part;
    this.#holdsRequests = true;
  }

  /** How many requests, or answers to them, were held back. */
  get held(): number {
    return this.#held;
  }

  /** Holds nothing more back. What is held back stays where it is. */
  stopHolding(): void {
    this.#part = null;
  }

  /** What was held back arrives. */
  deliver(): void {
    this.stopHolding();
    for (const send of this.#heldRequests.splice(0)) send();
    for (const socket of this.#paused) socket.resume();
    this.#paused.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/**
 * etcd drops a request whose connection ends before its answer, so the connection waits for the
 * answer.
 */
function sendAnew(target: number, bytes: Buffer): void {
  const socket = createConnection(target, "127.0.0.1");
  socket.on("data", () => socket.end());
  socket.on("error", () => socket.destroy());
  socket.write(bytes);
}

/**
 * A part of every transaction that puts a key with this beginning. The beginning has whole groups
 * of three letters, because of base64.
 */
export function putOf(start: string): string {
  return `"request_put":{"key":"${encoded(start)}`;
}

/** A part of every transaction that reads a key with this beginning, or a range from it. */
export function readOf(start: string): string {
  return `"request_range":{"key":"${encoded(start)}`;
}

export function deletionOf(start: string): string {
  return `"request_delete_range":{"key":"${encoded(start)}`;
}

function encoded(start: string): string {
  if (start.length % 3 !== 0) throw new Error(`${start} ends within a group of three letters`);
  return Buffer.from(start).toString("base64");
}
