import { createConnection, createServer, type Server, type Socket } from "node:net";

/** A TCP relay on 127.0.0.1 that a test can cut, hang and mend. */
export class Relay implements AsyncDisposable {
  #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #state: "open" | "cut" | "hung" | "mute" = "open";

  private constructor(target: number) {
    this.#target = target;
    this.#server = createServer({ pauseOnConnect: true }, (client) => this.#relay(client));
  }

  static async start(targetPort: number): Promise<Relay> {
    const relay = new Relay(targetPort);
    await new Promise<void>((listening) => relay.#server.listen(0, "127.0.0.1", listening));
    return relay;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the relay is closed");
    return address.port;
  }

  /** Resets every connection and refuses new ones. */
  cut(): void {
    this.#state = "cut";
    for (const pair of this.#pairs) {
      const [client, server] = pair;
      this.#pairs.delete(pair);
      // A reset of one that is being shut down fails, and leaves a handle for which Node spins at exit.
      if (client.readyState === "open") client.resetAndDestroy();
      else client.destroy();
      server.destroy();
    }
  }

  /** Connections stay, and nothing passes: as with a cable that was pulled. */
  hang(): void {
    this.#state = "hung";
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  /** What clients send arrives, and what the server says is lost. */
  mute(): void {
    this.#state = "mute";
  }

  /** Connections from now on go to another server. */
  aim(targetPort: number): void {
    this.#target = targetPort;
  }

  mend(): void {
    this.#state = "open";
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((closed) => this.#server.close(closed));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #relay(client: Socket): void {
    client.on("error", () => client.destroy());
    if (this.#state === "cut") {
      client.resetAndDestroy();
      return;
    }
    const server = createConnection(this.#target, "127.0.0.1");
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      from.setNoDelay(true);
      from.on("error", () => this.#pairs.has(pair) && to.destroy());
      from.on("data", (bytes) => {
        if (this.#state !== "mute" || from === client) to.write(bytes);
      });
      from.on("close", () => {
        if (this.#pairs.delete(pair)) to.destroy();
      });
    }
    if (this.#state === "hung") server.pause();
    else client.resume();
  }
}
