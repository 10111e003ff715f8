import { createConnection, createServer, type Socket } from "node:net";

/**
 * A relay that can keep some requests, or the answers to them, while everything else passes: whoever
 * asked does not know what was done, or will be. The gateway answers the requests of a connection in
 * turn, so a connection is kept as a whole.
 */
export class HeldBack implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  readonly #kept = new Set<Socket>();
  readonly #server;
  readonly #withheld: (() => void)[] = [];
  #part: string | null = null;
  #withholds = false;
  #caught = 0;

  constructor(target: number) {
    this.#server = createServer((client) => {
      const server = createConnection(target, "127.0.0.1");
      client.on("data", (bytes) => {
        const isMeant = this.#part !== null && bytes.includes(this.#part);
        if (isMeant) this.#caught++;
        if (isMeant && this.#withholds) {
          this.#withheld.push(() =>
            server.destroyed ? deliver(target, bytes) : void server.write(bytes),
          );
          return;
        }
        if (isMeant) {
          this.#kept.add(server);
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

  /** From now on, answers to requests that carry this are kept. */
  keep(part: string): void {
    this.#part = part;
  }

  /** From now on, requests that carry this are kept themselves, also when their sender gives up. */
  withhold(part: string): void {
    this.#part = part;
    this.#withholds = true;
  }

  /** How many requests were kept, or the answers to them. */
  get caught(): number {
    return this.#caught;
  }

  /** Nothing more is kept; what was stays where it is. */
  enough(): void {
    this.#part = null;
  }

  /** What was kept arrives. */
  letGo(): void {
    this.enough();
    for (const deliver of this.#withheld.splice(0)) deliver();
    for (const socket of this.#kept) socket.resume();
    this.#kept.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** etcd gives up on a request whose connection ends before its answer. */
function deliver(target: number, bytes: Buffer): void {
  const socket = createConnection(target, "127.0.0.1");
  socket.on("data", () => socket.end());
  socket.on("error", () => socket.destroy());
  socket.write(bytes);
}

/** How a transaction looks that puts a key which begins so. Whole groups of three letters, for base64. */
export function putOf(start: string): string {
  return `"request_put":{"key":"${encoded(start)}`;
}

/** How a transaction looks that reads a room, or a key in it. */
export function readingOf(start: string): string {
  return `"request_range":{"key":"${encoded(start)}`;
}

export function deletionOf(start: string): string {
  return `"request_delete_range":{"key":"${encoded(start)}`;
}

function encoded(start: string): string {
  if (start.length % 3 !== 0) throw new Error(`${start} ends within a group of three letters`);
  return Buffer.from(start).toString("base64");
}
