import { createConnection, createServer, type Server, type Socket } from "node:net";

/** One connection through the relay, and what its client sent while requests were held back. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly kept: Buffer[];
}

/** A TCP relay on 127.0.0.1 that a test can cut, hang, hold and mend. */
export class Relay implements AsyncDisposable {
  #target: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #state: "open" | "cut" | "hung" | "mute" | "holding" = "open";

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
      const { client, server } = pair;
      this.#pairs.delete(pair);
      // A reset of one that is being shut down fails, and leaves a handle for which Node spins at
      // exit.
      if (client.readyState === "open") client.resetAndDestroy();
      else client.destroy();
      server.destroy();
    }
  }

  /** Connections stay open and nothing passes, as when a cable is pulled. */
  hang(): void {
    this.#state = "hung";
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
    }
  }

  /** Holds back what clients send, even if they hang up. Answers of the server still arrive. */
  hold(): void {
    this.#state = "holding";
  }

  /** Delivers what was held back, in order. Everything passes again. */
  deliver(): void {
    this.#state = "open";
    for (const pair of this.#pairs) {
      for (const bytes of pair.kept.splice(0)) pair.server.write(bytes);
      if (pair.client.destroyed) this.#part(pair);
    }
  }

  /** Requests arrive at the server, and its answers are lost. */
  mute(): void {
    this.#state = "mute";
  }

  /** New connections go to another server. */
  aim(targetPort: number): void {
    this.#target = targetPort;
  }

  mend(): void {
    this.#state = "open";
    for (const { client, server } of this.#pairs) {
      client.resume();
      server.resume();
    }
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
    const pair: Pair = { client, server, kept: [] };
    this.#pairs.add(pair);
    client.setNoDelay(true);
    server.setNoDelay(true);
    server.on("error", () => this.#pairs.has(pair) && client.destroy());
    client.on("data", (bytes) => {
      if (this.#state === "holding") pair.kept.push(bytes);
      else server.write(bytes);
    });
    server.on("data", (bytes) => {
      if (this.#state !== "mute" && !client.destroyed) client.write(bytes);
    });
    client.on("close", () => {
      if (this.#state !== "holding" || pair.kept.length === 0) this.#part(pair);
    });
    server.on("close", () => this.#part(pair));
    if (this.#state === "hung") server.pause();
    else client.resume();
  }

  /** One side has closed. Data on its way to the server still arrives. */
  #part(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.end(() => pair.server.destroy());
  }
}
