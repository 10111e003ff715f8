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
      // A reset of one that is being shut down fails, and leaves a handle for which Node spins at exit.
      if (client.readyState === "open") client.resetAndDestroy();
      else client.destroy();
      server.destroy();
    }
  }

  /** Connections stay, and nothing passes: as with a cable that was pulled. */
  hang(): void {
    this.#state = "hung";
    for (const { client, server } of this.#pairs) {
      client.pause();
      server.pause();
    }
  }

  /** What clients send is kept back, even when they hang up; what the server says still arrives. */
  hold(): void {
    this.#state = "holding";
  }

  /** What was kept back arrives now, in its order, and everything passes again. */
  deliver(): void {
    this.#state = "open";
    for (const pair of this.#pairs) {
      for (const bytes of pair.kept.splice(0)) pair.server.write(bytes);
      if (pair.client.destroyed) this.#part(pair);
    }
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

  /** Either side has gone. What is on its way to the server still arrives there. */
  #part(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.end(() => pair.server.destroy());
  }
}
