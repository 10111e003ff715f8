import { createConnection, createServer, type Server, type Socket } from "node:net";

/**
 * A relay on 127.0.0.1 that passes everything on later: what clients send takes so long to arrive.
 */
export class SlowRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(targetPort: number, delayMs: number) {
    this.#server = createServer((client) => this.#relay(client, targetPort, delayMs));
  }

  static async start(targetPort: number, delayMs: number): Promise<SlowRelay> {
    const relay = new SlowRelay(targetPort, delayMs);
    await new Promise<void>((listening) => relay.#server.listen(0, "127.0.0.1", listening));
    return relay;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the relay is closed");
    return address.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #relay(client: Socket, targetPort: number, delayMs: number): void {
    const server = createConnection(targetPort, "127.0.0.1");
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        to.destroy();
        this.#sockets.delete(from);
      });
    }
    // Timers of one length fire in their order, so nothing overtakes.
    client.on("data", (bytes) => void setTimeout(() => server.write(bytes), delayMs));
    server.on("data", (bytes) => void client.write(bytes));
  }
}
